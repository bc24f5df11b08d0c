// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Markers of the scraper: each goes to the identity of its own series, in a
// metric of its own, and what it ended is not ended again.
func TestMarkersGoToTheirOwnSeries(t *testing.T) {
	b := start(t)
	b.feed(parse(`
		resource service.name=x
		metric m gauge 1
		1 @10 UUID=GPU-a namespace=n pod=a
		2 @10 UUID=GPU-a namespace=n pod=a err_code=31`))
	// The device changed hands and the scraper ends one of the series.
	b.expect(`
		resource service.name=x
		metric m gauge 1
		stale @20 UUID=GPU-a namespace=n pod=a
		3 @20 UUID=GPU-a namespace=n pod=b`, `
		resource hw.id=GPU-a hw.type=gpu k8s.namespace.name=n k8s.pod.name=b service.name=b
		metric m gauge 1
		3 @20 UUID=GPU-a hw.id=GPU-a
		resource hw.id=GPU-a hw.type=gpu k8s.namespace.name=n k8s.pod.name=a service.name=a
		metric m gauge 1
		stale @20 UUID=GPU-a hw.id=GPU-a
		resource hw.id=GPU-a hw.type=gpu k8s.namespace.name=n k8s.pod.name=a service.name=a
		metric m gauge 1
		stale @20 UUID=GPU-a err_code=31 hw.id=GPU-a`)
	// The target is gone. A marker without owner belongs to the last identity.
	b.expect(`
		resource service.name=x
		metric m gauge 1
		stale @30 UUID=GPU-a
		stale @30`, `
		resource service.name=x
		metric m gauge 1
		stale @30
		resource hw.id=GPU-a hw.type=gpu k8s.namespace.name=n k8s.pod.name=b service.name=b
		metric m gauge 1
		stale @30 UUID=GPU-a hw.id=GPU-a`)
	// It returns with another owner: nothing is left to be ended.
	b.expect(`
		resource service.name=x
		metric m gauge 1
		4 @40 UUID=GPU-a namespace=n pod=c`, `
		resource hw.id=GPU-a hw.type=gpu k8s.namespace.name=n k8s.pod.name=c service.name=c
		metric m gauge 1
		4 @40 UUID=GPU-a hw.id=GPU-a`)
	// A marker and a live point of one identity: two metrics.
	b.expect(`
		resource service.name=x
		metric m gauge 1
		stale @50 UUID=GPU-a namespace=n pod=c err_code=31
		5 @50 UUID=GPU-a namespace=n pod=c err_code=13`, `
		resource hw.id=GPU-a hw.type=gpu k8s.namespace.name=n k8s.pod.name=c service.name=c
		metric m gauge 1
		5 @50 UUID=GPU-a err_code=13 hw.id=GPU-a
		metric m gauge 1
		stale @50 UUID=GPU-a err_code=31 hw.id=GPU-a`)
	// A marker for what lives is nonsense: a link's row got the pod's labels.
	b.expect(`
		resource service.name=x
		metric m gauge 1
		6 @60 UUID=GPU-a namespace=n pod=c
		stale @60 UUID=GPU-a`, `
		resource hw.id=GPU-a hw.type=gpu k8s.namespace.name=n k8s.pod.name=c service.name=c
		metric m gauge 1
		6 @60 UUID=GPU-a hw.id=GPU-a`)
}

// A page may name any number of owners of one device.
func TestMarkersOfManyOwners(t *testing.T) {
	const pods = 24 // more than are looked through one by one
	in, want := "resource service.name=x\nmetric m gauge 1\n", ""
	for i := range 2 * pods {
		in += fmt.Sprintf("stale @10 UUID=GPU-a namespace=n pod=p%d x=%d\n", i%pods, i/pods)
	}
	for i := range pods {
		want += fmt.Sprintf(`
		resource hw.id=GPU-a hw.type=gpu k8s.namespace.name=n k8s.pod.name=p%[1]d service.name=p%[1]d
		metric m gauge 1
		stale @10 UUID=GPU-a hw.id=GPU-a x=0
		metric m gauge 1
		stale @10 UUID=GPU-a hw.id=GPU-a x=1`, i)
	}
	start(t).expect(in, want)
}

// A marker without owner that is no newer than the device's data does not mean
// the series that lives.
func TestLateMarkerEndsNothingThatLives(t *testing.T) {
	b := start(t)
	const live = "resource hw.id=GPU-a namespace=n pod=a\nmetric m gauge 1\n1 @20 hw.id=GPU-a"
	b.feed(parse(live))
	const late = "resource hw.id=GPU-a\nmetric m gauge 1\nstale @20 hw.id=GPU-a"
	b.expect(late, late)
	require.Equal(t, 1, b.tracked())
}

// Every end has the scope of the series that it ends.
func TestEndsKeepTheirScope(t *testing.T) {
	b := start(t)
	const live = `
		resource hw.id=GPU-a %[2]s
		scope one
		metric m gauge 1
		1 @%[1]d hw.id=GPU-a
		scope two
		metric n gauge 1
		2 @%[1]d hw.id=GPU-a`
	const chat = "k8s.namespace.name=ml k8s.pod.name=chat-0 service.name=chat-0"
	b.feed(parse(fmt.Sprintf(live, 10, "namespace=ml pod=chat-0")))
	b.expect(fmt.Sprintf(live, 20, ""), fmt.Sprintf(live, 20, "")+`
		resource hw.id=GPU-a `+chat+`
		scope one
		metric m gauge 1
		stale @20 hw.id=GPU-a
		scope two
		metric n gauge 1
		stale @20 hw.id=GPU-a`)
}

func TestMarkersOnDeviceResources(t *testing.T) {
	b := start(t)
	b.feed(parse(`
		resource hw.id=GPU-a namespace=n pod=a
		scope dcgm
		metric m gauge 1
		1 @10 hw.id=GPU-a
		2 @10 hw.id=GPU-a x=y
		3 @10 hw.id=GPU-a x=z`))
	// Own marker: a metric of its own. Then a marker on the freed device.
	b.expect(`
		resource hw.id=GPU-a namespace=n pod=a
		scope dcgm
		metric m gauge 1
		stale @20 hw.id=GPU-a x=y
		1 @20 hw.id=GPU-a
		3 @20 hw.id=GPU-a x=z`, `
		resource hw.id=GPU-a k8s.namespace.name=n k8s.pod.name=a service.name=a
		scope dcgm
		metric m gauge 1
		1 @20 hw.id=GPU-a
		3 @20 hw.id=GPU-a x=z
		metric m gauge 1
		stale @20 hw.id=GPU-a x=y`)
	b.expect(`
		resource hw.id=GPU-a
		scope dcgm
		metric m gauge 1
		stale @30 hw.id=GPU-a
		metric other gauge 1
		9 @30 hw.id=GPU-a`, `
		resource hw.id=GPU-a
		scope dcgm
		metric other gauge 1
		9 @30 hw.id=GPU-a
		resource hw.id=GPU-a k8s.namespace.name=n k8s.pod.name=a service.name=a
		scope dcgm
		metric m gauge 1
		stale @30 hw.id=GPU-a
		resource hw.id=GPU-a k8s.namespace.name=n k8s.pod.name=a service.name=a
		scope dcgm
		metric m gauge 1
		stale @30 hw.id=GPU-a x=z`)
}
