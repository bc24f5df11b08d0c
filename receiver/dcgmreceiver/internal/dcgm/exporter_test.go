// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func TestExporter(t *testing.T) {
	opts := otel
	opts.ClusterName = "prod"
	md, err := scrape(onGPU("DCGM_FI_DEV_GPU_UTIL", 50)+"\n", t0)
	require.NoError(t, err)
	r := newTarget(opts).Map(md, devicemap.Exporter{Address: "10.0.0.1", Port: 9400, Node: "node-a"})
	assert.Equal(t, map[string]any{
		"server.address": "10.0.0.1", "server.port": int64(9400), "k8s.node.name": "node-a", "k8s.cluster.name": "prod",
	}, r.Metrics.ResourceMetrics().At(0).Resource().Attributes().AsRaw())
	each(r.Metrics, func(res pcommon.Map, m pmetric.Metric, p pmetric.NumberDataPoint) {
		if _, device := res.Get(names.HwID); !device {
			assert.Equal(t, map[string]any{"server.address": "10.0.0.1", "server.port": int64(9400), "k8s.node.name": "node-a"},
				p.Attributes().AsRaw(), m.Name())
			assert.Equal(t, t0, p.Timestamp().AsTime(), m.Name())
		}
	})
}

func TestFailedScrape(t *testing.T) {
	r := newTarget(otel).Map(failed(t0), here)
	assert.Equal(t, []string{
		"gpu.exporter.scrape.duration{} 0.25",
		"gpu.exporter.scrape.samples{} 0",
		"gpu.exporter.up{} 0",
	}, exporterPoints(r))
}

// TestExporterPod: without NODE_NAME the exporter takes its pod's name for the
// host's. It would change with every restart of the exporter.
func TestExporterPod(t *testing.T) {
	for pod, want := range map[string]any{"dcgm-exporter-x": nil, "": "dcgm-exporter-x", "dcgm-exporter": "dcgm-exporter-x"} {
		md, err := scrape(onGPU("DCGM_FI_DEV_GPU_UTIL", 50, `Hostname="dcgm-exporter-x"`)+"\n", t0)
		require.NoError(t, err)
		r := newTarget(otel).Map(md, devicemap.Exporter{Address: "10.0.0.1", Port: 9400, Pod: pod})
		assert.Equal(t, want, resource(r, "GPU-0")["host.name"], pod)
	}
}

// TestFrozen: an exporter prints the same values for ever if its host engine hangs.
func TestFrozen(t *testing.T) {
	page := func(energy, clock int) []string {
		return []string{
			onGPU("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", energy), onGPU("DCGM_FI_DEV_SM_CLOCK", clock), onGPU("DCGM_FI_DEV_GPU_UTIL", 0),
		}
	}
	frozen := func(r devicemap.Result) string {
		for _, line := range exporterPoints(r) {
			if v, ok := strings.CutPrefix(line, "gpu.exporter.frozen{} "); ok {
				return v
			}
		}
		return "unknown"
	}
	still, moves, unknown := "1", "0", "unknown"
	same := func() []string { return page(5000, 1980) }
	energy := 5000
	another := func() []string { energy++; return page(energy, 1980) }
	fails := func() []string { return nil }
	repeat := func(n int, make func() []string) (all []func() []string) {
		return slices.Repeat([]func() []string{make}, n)
	}
	for _, tt := range []struct {
		name  string
		every time.Duration // interval, unless it is given
		pages []func() []string
		want  []string
	}{
		{"still from the first page on: known after five pages and a minute", 0, append(repeat(6, same), another, another), []string{unknown, unknown, unknown, unknown, still, still, moves, moves}},
		{"pages that come faster than the exporter reads", 20 * time.Second / 3, append([]func() []string{another}, repeat(12, same)...),
			[]string{unknown, moves, moves, moves, moves, moves, moves, moves, moves, moves, moves, still, still}},
		{"an idle GPU draws power", 0, repeat(5, another), []string{unknown, moves, moves, moves, moves}},
		{"intervals longer than the minute: a second page alone says nothing", time.Minute, append(repeat(2, another), repeat(4, fails)...), []string{unknown, moves, unknown, unknown, unknown, unknown}},
		{"a scrape that failed says nothing, and the count goes on", 0, append(append(repeat(5, same), fails, same, fails, fails), same, another, fails, another), []string{
			unknown, unknown, unknown, unknown, still, unknown, still, unknown, unknown, still, moves, unknown, moves}},
		{"one page that failed after the start", 0, []func() []string{same, fails, same, same, same, same}, []string{unknown, unknown, unknown, unknown, unknown, still}},
		{"pages without energy in between", 0, append(append(repeat(5, same), func() []string { return []string{onGPU("DCGM_FI_DEV_SM_CLOCK", 210)} }), same), []string{
			unknown, unknown, unknown, unknown, still, unknown, still}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, got := newExporter(t, otel), []string(nil)
			energy = 5000
			for _, lines := range tt.pages {
				if tt.every != 0 {
					e.now = e.now.Add(tt.every - interval)
				}
				if lines := lines(); lines != nil {
					got = append(got, frozen(e.scrape(lines...)))
					continue
				}
				e.now = e.now.Add(interval)
				got = append(got, frozen(e.target.Map(failed(e.now), here)))
			}
			assert.Equal(t, tt.want, got)
		})
	}
	t.Run("one device that moves is enough", func(t *testing.T) {
		e := newExporter(t, otel)
		for i := range 20 {
			lines := append(page(5000, 210), fmt.Sprintf(`DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{UUID="GPU-1"} %d`, i))
			assert.Equal(t, i > 0, frozen(e.scrape(lines...)) == moves)
		}
	})
	t.Run("a vGPU has no energy and may stand still", func(t *testing.T) {
		e := newExporter(t, otel)
		for range 20 {
			assert.Equal(t, unknown, frozen(e.scrape(onGPU("DCGM_FI_DEV_SM_CLOCK", 210))))
		}
	})
	t.Run("MIG", func(t *testing.T) {
		e := newExporter(t, otel)
		r := e.scrape()
		for range 10 {
			r = e.scrape(onMIG(7, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 5000), onMIG(7, "DCGM_FI_DEV_SM_CLOCK", 1980))
		}
		assert.Equal(t, still, frozen(r))
	})
	t.Run("a clock that is set back", func(t *testing.T) {
		e := newExporter(t, otel)
		for range 10 {
			e.scrape(same()...)
		}
		e.now = e.now.Add(-time.Hour)
		assert.Equal(t, unknown, frozen(e.scrape(same()...)))
		assert.Equal(t, moves, frozen(e.scrape(page(6000, 1980)...)))
	})
}
