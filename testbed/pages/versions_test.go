// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// versionsInUse are the forms that a page can have.
var versionsInUse = []string{"1.7", "2.1", "2.4", "3.0", "3.3", "4.5", "4.6", "4.9"}

// TestOneTruthThroughEveryVersion: the same seconds of a fleet, as pages of every version of
// the exporter, become the same series. What two versions both print is equal, exactly,
// but for what coarse does not distinguish. Families outside of the field table keep the
// names that the version has.
func TestOneTruthThroughEveryVersion(t *testing.T) {
	held := func(name string, load gpusim.Load, devices ...string) gpusim.Pod {
		return gpusim.Pod{Namespace: "ml", Name: name, Container: "main", Labels: map[string]string{"app": name}, Devices: devices, Load: load}
	}
	for name, tt := range map[string]struct {
		node  gpusim.Node
		since string // the first version that prints such a page
	}{
		"boards":     {gpusim.Node{Model: "H100", Devices: 3, PodLabels: true, Pods: []gpusim.Pod{held("a", gpusim.Training, "0"), held("b", gpusim.Inference, "1")}}, "1.7"},
		"old boards": {gpusim.Node{Model: "T4", Devices: 2, Pods: []gpusim.Pod{held("a", gpusim.Inference, "0")}}, "1.7"},
		"new boards": {gpusim.Node{Model: "B200", Devices: 2, Pods: []gpusim.Pod{held("a", gpusim.Training, "0", "1")}}, "1.7"},
		"instances": {gpusim.Node{
			Model: "A100-SXM4-40GB", Devices: 2, MIG: map[string][]string{"1": {"3g.20gb", "1g.5gb"}},
			Pods: []gpusim.Pod{held("a", gpusim.Training, "1:0"), held("b", gpusim.Inference, "0")},
		}, "2.1"},
		"shares": {gpusim.Node{Model: "L40S", Devices: 1, VirtualGPUs: true, Pods: []gpusim.Pod{
			held("a", gpusim.Training, "0::0"), held("b", gpusim.Inference, "0::1"),
		}}, "4.6"},
	} {
		for _, fields := range []string{"default", "all"} {
			t.Run(name+", "+fields, func(t *testing.T) {
				outputs := map[string][]output{}
				versions := versionsInUse[slices.Index(versionsInUse, tt.since):]
				of := func(version string) gpusim.Node {
					node := tt.node
					node.Name, node.Version, node.Fields, node.Driver = "n", version, fields, "580.126.09"
					return node
				}
				for _, version := range versions {
					outputs[version] = outputsOf(t, of(version))
				}
				// A counters file with the names of both has each series once.
				for _, mixed := range [][2]string{{"4.6", "4.9"}, {"4.9", "4.6"}} {
					name := mixed[0] + " and " + mixed[1]
					versions, outputs[name] = append(versions, name), outputsOf(t, of(mixed[0]), of(mixed[1]))
				}
				for i, a := range versions {
					for _, b := range versions[i+1:] {
						compare(t, a, b, outputs[a], outputs[b])
					}
				}
				// The last two print the same fields, under other names.
				was, is := outputs["4.6"], outputs["4.9"]
				for k := range is {
					for _, key := range slices.Sorted(maps.Keys(was[k].points)) {
						assert.Contains(t, is[k].points, key, "4.9 lacks what 4.6 has, scrape %d", k)
					}
				}
			})
		}
	}
}

// coarse is the unit on the page, in the metric's, where versions differ in it.
var coarse = map[string]float64{
	"hw.energy": 1, // J, and mJ before 4.9
	// KiB/s, and 1000 KiB/s before 4.9.
	"gpu.nvlink.throughput":      1000 * 1024,
	"gpu.nvlink.lane.throughput": 1000 * 1024,
}

// output is what one page becomes.
type output struct {
	points    map[string]float64 // by device, metric and attributes
	resources map[string]map[string]any
	twice     bool // a series is repeated
	sized     bool // the size of the memory is on the page, or all parts of it
}

// compare fails for each series that two versions give different values.
func compare(t *testing.T, a, b string, of, as []output) {
	t.Helper()
	for k := range of {
		both := 0
		assert.False(t, of[k].twice || as[k].twice, "%s and %s: a series is repeated", a, b)
		for key, v := range of[k].points {
			w, also := as[k].points[key]
			metric := strings.Fields(key)[1]
			switch {
			case !also:
				continue
			case (metric == "hw.gpu.memory.limit" || metric == "hw.gpu.memory.utilization") && (!of[k].sized || !as[k].sized):
				continue // what the driver reserves is not known to both
			case coarse[metric] != 0 && !strings.Contains(key, "network.io.direction"):
				assert.Less(t, math.Abs(v-w), coarse[metric], "%s and %s: %s, scrape %d", a, b, key, k)
			default:
				assert.Equal(t, v, w, "%s and %s: %s, scrape %d", a, b, key, k)
			}
			both++
		}
		assert.Greater(t, both, 5, "%s and %s", a, b)
		for id, attrs := range of[k].resources {
			other, there := as[k].resources[id]
			if !assert.True(t, there, "%s lacks %s", b, id) {
				continue
			}
			for key, v := range attrs {
				if w, also := other[key]; also {
					assert.Equal(t, v, w, "%s and %s: %s of %s", a, b, key, id)
				}
			}
		}
	}
}

// outputsOf are the metrics of a node, scrape after scrape: a board is throttled and has an
// XID on the way. Several nodes are one with the pages of all.
func outputsOf(t *testing.T, nodes ...gpusim.Node) []output {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pages := make([][]byte, scrapes)
	for _, node := range nodes {
		fleet, err := gpusim.New(gpusim.Config{Seed: 5, Nodes: []gpusim.Node{node}, Faults: []gpusim.Fault{
			{Node: "n", Kind: gpusim.ThermalThrottle, Device: "0", After: gpusim.Duration(20 * time.Second), For: gpusim.Duration(30 * time.Second)},
			{Node: "n", Kind: gpusim.XID, Device: "0", Code: 94, After: gpusim.Duration(40 * time.Second)},
		}}, func() time.Time { return start })
		require.NoError(t, err)
		for k := range pages {
			page, err := fleet.Page("n", start.Add(time.Duration(k)*interval))
			require.NoError(t, err)
			pages[k] = append(pages[k], page...)
		}
	}
	var outputs []output
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		page := string(pages[len(outputs)])
		outputs = append(outputs, outputOf(md, strings.Contains(page, "FB_TOTAL") || strings.Contains(page, "FB_CAPACITY") || strings.Contains(page, "FB_RESERVED")))
		return nil
	})
	require.NoError(t, err)
	refused := scrape(t, [][][]byte{pages}, map[string]any{}, next)
	require.Len(t, outputs, scrapes)
	for _, line := range refused {
		assert.NotContains(t, line, "ambiguous")
		assert.NotContains(t, line, "implausible")
	}
	return outputs
}

func outputOf(md pmetric.Metrics, sized bool) output {
	o := output{points: map[string]float64{}, resources: map[string]map[string]any{}, sized: sized}
	for _, rm := range md.ResourceMetrics().All() {
		id, device := rm.Resource().Attributes().Get("hw.id")
		if !device {
			continue
		}
		o.resources[id.Str()] = rm.Resource().Attributes().AsRaw()
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			if strings.HasPrefix(m.Name(), "dcgm.") {
				continue
			}
			list := pmetric.NewNumberDataPointSlice()
			switch m.Type() {
			case pmetric.MetricTypeGauge:
				list = m.Gauge().DataPoints()
			case pmetric.MetricTypeSum:
				list = m.Sum().DataPoints()
			}
			for _, p := range list.All() {
				key := fmt.Sprint(id.Str(), " ", m.Name(), " ", p.Attributes().AsRaw())
				_, twice := o.points[key]
				o.twice = o.twice || twice
				if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
					o.points[key] = float64(p.IntValue())
				} else {
					o.points[key] = p.DoubleValue()
				}
			}
		}
	}
	return o
}
