// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// listed is an entry of "dcgm.holders": labels, and what the exporter measured.
type listed struct {
	labels       string
	memory, util any
}

// sharedPage is a page of the shared device id with such a list.
func sharedPage(at int, id string, list ...listed) pmetric.Metrics {
	md := parse(inputs(at, id, ""))
	entries := md.ResourceMetrics().At(0).Resource().Attributes().PutEmptySlice(names.ExporterHolders)
	for _, l := range list {
		e := entries.AppendEmpty().SetEmptyMap()
		putAll(e, strings.Fields(l.labels))
		for name, v := range map[string]any{names.GPUMemoryUsage.Name: l.memory, names.GPUUtilization.Name: l.util} {
			if v != nil {
				_ = e.PutEmpty(name).FromRaw(v)
			}
		}
	}
	return md
}

// formatInts is format for data in which the shares of memory, and no other
// values, are whole numbers.
func formatInts(t *testing.T, md pmetric.Metrics) string {
	t.Helper()
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for _, p := range numbers(m).All() {
					if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
						require.Equal(t, names.GPUMemoryUsage.Name, m.Name())
						p.SetDoubleValue(float64(p.IntValue()))
					}
				}
			}
		}
	}
	return format(md)
}

// ownPart is the resource of a replica with a utilization and memory of its own;
// "" is one that is not its own, or none.
func ownPart(at int, id, parent, util, memory, attrs string) string {
	text := part(at, id, parent, "", attrs)
	if util != "" {
		text = strings.Replace(text, fmt.Sprintf("0.5 @%d gpu.value.scope=device", at), fmt.Sprintf("%s @%d", util, at), 1)
	}
	if memory != "" {
		text += fmt.Sprintf("metric hw.gpu.memory.usage sum By\n%s @%d hw.id=%s\n", memory, at, id)
	}
	return text
}

const (
	aListed = "namespace=ml pod=a-0 container=main vgpu=0"
	bListed = "namespace=ml pod=b-0 container=main vgpu=2"
)

// shareOfTwo is a snapshot in which a-0 and b-0 hold a replica each.
func shareOfTwo(at int, id string) string {
	return snapshot(at, "ml/a-0/main 0.25 gpu.sharing=time_slicing hw.id="+id+"::0",
		"ml/b-0/main 0.25 gpu.sharing=time_slicing hw.id="+id+"::2", "- 0 gpu.sharing=time_slicing hw.id="+id+"::1")
}

// What the exporter measured for each owner is the replica's own; the device
// keeps its series, and the list goes.
func TestShares(t *testing.T) {
	for _, id := range []string{"GPU-a", "GPU-a/3"} {
		t.Run(id, func(t *testing.T) {
			b := start(t, noService)
			b.feed(parse(shareOfTwo(10, id)))
			out := b.feed(sharedPage(12, id, listed{aListed, int64(50), .375}, listed{bListed, int64(0), 0.}))
			require.Equal(t, format(parse(inputs(12, id, "")+ownPart(12, id+"::0", id, "0.375", "50", aHeld)+
				ownPart(12, id+"::2", id, "0", "0", bHeld))), formatInts(t, out))

			// One is given back: all its series end, memory too.
			b.feed(parse(snapshot(20, "ml/a-0/main 0.25 gpu.sharing=time_slicing hw.id="+id+"::0", "- 0 gpu.sharing=time_slicing hw.id="+id+"::2")))
			out = b.feed(sharedPage(27, id, listed{aListed, int64(60), .5}))
			ends := strings.ReplaceAll(partEnd(27, id+"::2", id, bHeld), "stale @27 gpu.value.scope=device hw.gpu.task", "stale @27 hw.gpu.task") +
				"metric hw.gpu.memory.usage sum By\nstale @27 hw.id=" + id + "::2\n"
			require.Equal(t, format(parse(inputs(27, id, "")+ownPart(27, id+"::0", id, "0.5", "60", aHeld)+ends)), formatInts(t, out))
		})
	}
}

// Whatever leaves open what a replica itself uses gives it nothing.
func TestSharesThatAreUnknown(t *testing.T) {
	b50 := listed{bListed, int64(50), .375}
	for _, tt := range []struct {
		name         string
		list         []listed
		util, memory string // of the replica of b-0
		change       func(*Config)
	}{
		{"both", []listed{b50}, "0.375", "50", nil},
		{"memory alone", []listed{{bListed, int64(50), nil}}, "", "50", nil},
		{"utilization alone", []listed{{bListed, nil, .375}}, "0.375", "", nil},
		{"neither", []listed{{bListed, nil, nil}}, "", "", nil},
		{"no number of the replica", []listed{{"namespace=ml pod=b-0 container=main", int64(50), nil}}, "", "50", nil},
		{"another replica", []listed{{"namespace=ml pod=b-0 container=main vgpu=1", int64(50), .375}}, "", "", nil},
		{"another container", []listed{{"namespace=ml pod=b-0 container=side vgpu=2", int64(50), .375}}, "", "", nil},
		{"another namespace", []listed{{"namespace=nl pod=b-0 container=main vgpu=2", int64(50), .375}}, "", "", nil},
		{"another pod", []listed{{"namespace=ml pod=c-0 container=main vgpu=2", int64(50), .375}}, "", "", nil},
		{"its pod is there twice", []listed{b50, {"namespace=ml pod=b-0 container=main vgpu=1", int64(50), .375}}, "", "", nil},
		{"its pod is there with another container", []listed{b50, {"namespace=ml pod=b-0 container=side vgpu=1", int64(50), .375}}, "", "", nil},
		{"a sum over processes above what there is", []listed{{bListed, nil, 1.02}}, "1", "", nil},
		{"no such values", []listed{{bListed, int64(-1), -.1}}, "", "", nil},
		{"no numbers", []listed{{bListed, "50", math.NaN()}}, "", "", nil},
		{"infinite, and another type", []listed{{bListed, 50., math.Inf(1)}}, "", "", nil},
		{"labels are not believed", []listed{b50}, "", "", func(c *Config) { c.ExporterLabels = ExporterLabelsIgnore }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			change := []func(*Config){noService}
			if tt.change != nil {
				change = append(change, tt.change)
			}
			b := start(t, change...)
			b.feed(parse(shareOfTwo(10, "GPU-a")))
			require.Equal(t, format(parse(inputs(12, "GPU-a", "")+part(12, "GPU-a::0", "GPU-a", "", aHeld)+
				ownPart(12, "GPU-a::2", "GPU-a", tt.util, tt.memory, bHeld))), formatInts(t, b.feed(sharedPage(12, "GPU-a", tt.list...))))
		})
	}
}

// A pod that holds two replicas is measured once: what each one uses is unknown.
func TestSharesOfAPodWithTwoReplicas(t *testing.T) {
	b := start(t, noService)
	b.feed(parse(snapshot(10, "ml/a-0/main 0.5 gpu.sharing=time_slicing hw.id=GPU-a::0", "ml/a-0/main 0.5 gpu.sharing=time_slicing hw.id=GPU-a::1")))
	out := b.feed(sharedPage(12, "GPU-a", listed{aListed, int64(50), .375}))
	require.Equal(t, format(parse(inputs(12, "GPU-a", "")+part(12, "GPU-a::0", "GPU-a", "", aHeld)+
		part(12, "GPU-a::1", "GPU-a", "", aHeld))), formatInts(t, out))
}

// The device's utilization and the replica's own are never there together: the
// one that is no longer reported ends.
func TestSharesBeginAndEnd(t *testing.T) {
	const id, a = "GPU-a", "GPU-a::0"
	end := func(at int, scope string) string {
		return fmt.Sprintf("resource hw.id=%s hw.parent=%s hw.type=gpu %s\nscope dcgm\nmetric hw.gpu.utilization gauge 1\nstale @%d %s hw.gpu.task=general hw.id=%s\n",
			a, id, aHeld, at, scope, a)
	}
	b := start(t, noService)
	b.feed(parse(snapshot(10, "ml/a-0/main 0.5 gpu.sharing=time_slicing hw.id="+a)))
	for _, step := range []struct {
		at   int
		list []listed
		want string
	}{
		{12, []listed{{aListed, nil, nil}}, ownPart(12, a, id, "", "", aHeld)},
		{27, []listed{{aListed, int64(50), .375}}, ownPart(27, a, id, "0.375", "50", aHeld) + end(27, "gpu.value.scope=device")},
		{42, []listed{{aListed, int64(50), .25}}, ownPart(42, a, id, "0.25", "50", aHeld)},
		{57, nil, ownPart(57, a, id, "", "", aHeld) + end(57, "")},
		// Late data ends nothing.
		{50, []listed{{aListed, nil, .25}}, ownPart(50, a, id, "0.25", "", aHeld)},
	} {
		out := b.feed(sharedPage(step.at, id, step.list...))
		require.Equal(t, format(parse(inputs(step.at, id, "")+step.want)), formatInts(t, out), "at %d", step.at)
	}
}

// On a MIG instance memory may be all that the page has.
func TestShareOfMemoryAlone(t *testing.T) {
	b := start(t, noService)
	b.feed(parse(shareOfTwo(10, "GPU-a/3")))
	md := sharedPage(12, "GPU-a/3", listed{aListed, int64(50), nil})
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().RemoveIf(func(m pmetric.Metric) bool {
		return m.Name() != names.GPUMemoryUsage.Name
	})
	require.Equal(t, format(parse(`
		resource hw.id=GPU-a/3 hw.type=gpu
		scope dcgm
		metric hw.gpu.memory.usage sum By
		80 @12 hw.id=GPU-a/3
		resource hw.id=GPU-a/3::0 hw.parent=GPU-a/3 hw.type=gpu `+aHeld+`
		scope dcgm
		metric hw.gpu.memory.usage sum By
		50 @12 hw.id=GPU-a/3::0`)), formatInts(t, b.feed(md)))
}
