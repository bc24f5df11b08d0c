// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// A node's clock is set back by an hour, and then its devices change hands. The
// sum over devices is right all the time, and what ends a series lies behind the
// series' last point, by more than stores round off.
func TestClockSetBack(t *testing.T) {
	for name, inputs := range map[string]func(at int, pod string) (allocations, samples string){
		"whole": func(at int, pod string) (string, string) {
			return snapshot(at, "ml/"+pod+"/main 1 hw.id=GPU-a"), telemetry(at+2, "GPU-a", "")
		},
		"shared": func(at int, pod string) (string, string) {
			part := strings.TrimPrefix(pod, "pod-")
			return snapshot(at, "ml/"+pod+"/main 0.5 gpu.sharing=time_slicing hw.id=GPU-a::"+part), inputs(at+2, "GPU-a", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, store, newest := start(t, noService), backend{}, map[string]time.Time{}
				at, pod := 10_000, "pod-0"
				for i := range 12 {
					switch i {
					case 3:
						at -= 3600
					case 5:
						pod = "pod-1"
					}
					allocations, samples := inputs(at, pod)
					for _, in := range []string{allocations, samples} {
						out := b.feed(parse(in))
						store.write(t, out)
						requireEndsBehind(t, out, newest)
						time.Sleep(2 * time.Second)
					}
					require.InDelta(t, 300, store.sum("hw.power"), 0, "after %d intervals", i)
					if i != 5 { // the first snapshot with the new owner may still be late
						require.LessOrEqual(t, store.sum("gpu.allocation"), 1.0, "after %d intervals", i)
					}
					time.Sleep(11 * time.Second)
					at += 15
				}
				owners := map[string]bool{}
				for series := range store {
					for _, pod := range []string{"pod-0", "pod-1"} {
						if strings.Contains(series, pod) {
							owners[pod] = true
						}
					}
				}
				require.Equal(t, map[string]bool{"pod-1": true}, owners)
			})
		})
	}
}

// requireEndsBehind keeps the time of the newest point of each series in newest,
// and compares markers with it.
func requireEndsBehind(t *testing.T, md pmetric.Metrics, newest map[string]time.Time) {
	for _, rm := range md.ResourceMetrics().All() {
		identity := str(rm.Resource().Attributes(), names.K8sPodName)
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for _, p := range numbers(m).All() {
					series := m.Name() + identity + formatAttrs(p.Attributes())
					at := p.Timestamp().AsTime().Truncate(time.Millisecond)
					if p.Flags().NoRecordedValue() {
						require.True(t, at.After(newest[series]), "%s ends at %s, its last point is of %s", series, at, newest[series])
					} else {
						newest[series] = at
					}
				}
			}
		}
	}
}

// A gpu.allocation point without a time is not trusted: it would be of the same
// snapshot as all others.
func TestAllocationWithoutTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, noService)
		for i := range 8 {
			b.feed(parse(snapshot(0, "ml/a-0/main 1 hw.id=GPU-a")))
			require.Equal(t, map[string]string{"GPU-a": "ml/label-0"},
				ownersIn(b, telemetry(10+15*i, "GPU-a", "namespace=ml pod=label-0")), "once believed, it would expire and never come back")
			time.Sleep(15 * time.Second)
		}
		require.Zero(t, b.p.pipeline.Allocations.Nodes())
	})
}
