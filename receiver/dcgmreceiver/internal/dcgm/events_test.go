// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvidia"
)

// active lists the reasons that hold the clocks down, and fails unless every
// reason has a point.
func active(t *testing.T, r devicemap.Result) []string {
	t.Helper()
	on := []string{}
	lines := only(r, names.GPUThrottleActive.Name)
	for _, line := range lines {
		if reason, ok := strings.CutSuffix(line, "} 1"); ok {
			on = append(on, strings.TrimPrefix(reason, "gpu.throttle.active{gpu.throttle.reason="))
		}
	}
	assert.GreaterOrEqual(t, len(lines), len(nvidia.ClockEvents))
	return on
}

func TestThrottle(t *testing.T) {
	mask := func(v any) string { return onGPU("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", v) }
	count := func(event string, v int) string {
		return onGPU("DCGM_EXP_CLOCK_EVENTS_COUNT", v, `clock_event="`+event+`"`, `window_size_in_ms="300000"`)
	}
	for name, tt := range map[string]struct {
		page []string
		want []string
	}{
		"nothing":                  {[]string{mask(0)}, []string{}},
		"idle":                     {[]string{mask(1)}, []string{"gpu_idle"}},
		"thermal":                  {[]string{mask(0x48)}, []string{"hw_slowdown", "hw_thermal"}},
		"all":                      {[]string{mask(0x1ff)}, slices.Sorted(slices.Values(nvidia.ClockEvents[:]))},
		"bits that nobody knows":   {[]string{mask(0x604)}, []string{"power_cap"}},
		"the mask is exact":        {[]string{mask(0), count("power_cap", 3)}, []string{}},
		"a count in the window":    {[]string{count("power_cap", 3), count("sync_boost", 0)}, []string{"power_cap"}},
		"no event in the window":   {[]string{onGPU("DCGM_EXP_CLOCK_EVENTS_COUNT", 0)}, []string{}},
		"an event of a new driver": {[]string{count("new_reason", 1)}, []string{"new_reason"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, active(t, mapOnce(t, otel, tt.page...)))
		})
	}
	t.Run("totals", func(t *testing.T) {
		e := newExporter(t, otel)
		total := func(event string, v int) string {
			return onGPU("DCGM_EXP_CLOCK_EVENTS_TOTAL", v, `clock_event="`+event+`"`)
		}
		assert.Equal(t, []string{}, active(t, e.scrape(total("power_cap", 9))), "of some time in the past")
		assert.Equal(t, []string{"power_cap"}, active(t, e.scrape(total("power_cap", 10))))
		assert.Equal(t, []string{}, active(t, e.scrape(total("power_cap", 10))))
		assert.Equal(t, []string{"sync_boost"}, active(t, e.scrape(total("power_cap", 10), total("sync_boost", 1))), "it was not there before")
		assert.Equal(t, []string{}, active(t, e.scrape(total("power_cap", 0))), "the exporter was restarted")
	})
	assert.Empty(t, only(mapOnce(t, otel, onGPU("DCGM_FI_DEV_GPU_UTIL", 1)), names.GPUThrottleActive.Name), "unknown is not 0")
}

func TestHealth(t *testing.T) {
	health := func(watch string, v any) string {
		return onGPU("DCGM_EXP_GPU_HEALTH_STATUS", v, `health_watch="`+watch+`"`, `health_error_code="DCGM_FR_OK"`)
	}
	r := mapOnce(t, otel, health("PCIE", 0), health("MEM", 10), health("ALL", 20), health("POWER", 99), onGPU("DCGM_EXP_GPU_HEALTH_STATUS", 0))
	var in []string
	lines := only(r, names.GPUHealthStatus.Name)
	for _, line := range lines {
		if strings.HasSuffix(line, " 1") {
			in = append(in, line)
		}
	}
	assert.Len(t, lines, 12)
	assert.Equal(t, []string{
		"gpu.health.status{gpu.health.state=fail,gpu.health.watch=all} 1",
		"gpu.health.status{gpu.health.state=fail,gpu.health.watch=power} 1",
		"gpu.health.status{gpu.health.state=pass,gpu.health.watch=pcie} 1",
		"gpu.health.status{gpu.health.state=warn,gpu.health.watch=mem} 1",
	}, in)
}

// A fabric is in one of three states; a board without one, and a code that is not
// defined, have none.
func TestFabric(t *testing.T) {
	for value, want := range map[int]string{1: "healthy", 2: "unhealthy", 3: "limited"} {
		assert.ElementsMatch(t, []string{
			"gpu.fabric.status{gpu.fabric.state=healthy} " + map[bool]string{true: "1", false: "0"}[want == "healthy"],
			"gpu.fabric.status{gpu.fabric.state=unhealthy} " + map[bool]string{true: "1", false: "0"}[want == "unhealthy"],
			"gpu.fabric.status{gpu.fabric.state=limited} " + map[bool]string{true: "1", false: "0"}[want == "limited"],
		}, only(mapOnce(t, otel, onGPU("DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY", value)), names.GPUFabricStatus.Name))
	}
	for _, value := range []int{0, 4} {
		assert.Empty(t, only(mapOnce(t, otel, onGPU("DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY", value)), names.GPUFabricStatus.Name), value)
	}
}

// Other GPUs that are reached over NVLink, and those that are not, are counted.
func TestPeers(t *testing.T) {
	p2p := func(peer string, v any) string {
		return onGPU("DCGM_EXP_P2P_STATUS", v, `peer_gpu="`+peer+`"`, `link_status="?"`)
	}
	peers := func(lines ...string) []string { return only(mapOnce(t, otel, lines...), names.GPUNVLinkPeers.Name) }
	assert.Equal(t, []string{"gpu.nvlink.peers{gpu.nvlink.state=down} 2", "gpu.nvlink.peers{gpu.nvlink.state=up} 1"}, peers(p2p("1", 0), p2p("2", 3), p2p("3", 6)))
	assert.Equal(t, []string{"gpu.nvlink.peers{gpu.nvlink.state=down} 0", "gpu.nvlink.peers{gpu.nvlink.state=up} 1"}, peers(p2p("1", 0)))
	assert.Empty(t, peers(onGPU("DCGM_EXP_P2P_STATUS", 0)), "no other GPU")
}

// xidErrors renders the counts with their start, in seconds after the first page.
func xidErrors(r devicemap.Result) map[string]float64 {
	starts := map[string]float64{}
	each(r.Metrics, func(_ pcommon.Map, m pmetric.Metric, p pmetric.NumberDataPoint) {
		if m.Name() == names.GPUXIDErrors.Name {
			starts[render(m, p)] = p.StartTimestamp().AsTime().Sub(t0).Seconds()
		}
	})
	return starts
}

// TestXIDDerived counts changes of the last code.
func TestXIDDerived(t *testing.T) {
	xid := func(code int) string {
		return onGPU("DCGM_FI_DEV_XID_ERRORS", code, `err_code="x"`, `err_msg="y"`)
	}
	const (
		of31 = "gpu.xid.errors{gpu.xid.code=31,gpu.xid.derived=true} "
		of79 = "gpu.xid.errors{gpu.xid.code=79,gpu.xid.derived=true} "
	)
	type step struct {
		row  string // "" for a page without XIDs
		want map[string]float64
	}
	none := map[string]float64{}
	for name, steps := range map[string][]step{
		"an exporter that prints 0": {
			{xid(0), none},
			{xid(79), map[string]float64{of79 + "1": 0}},
			{xid(79), map[string]float64{of79 + "1": 0}},
			{xid(31), map[string]float64{of79 + "1": 0, of31 + "1": 30}},
			{xid(79), map[string]float64{of79 + "2": 0, of31 + "1": 30}},
		},
		"an exporter that has no row before the first": {
			{"", none},
			{"", none},
			{xid(79), map[string]float64{of79 + "1": 15}},
		},
		"the first code seen may be old": {
			{xid(79), none},
			{xid(79), none},
			{xid(31), map[string]float64{of31 + "1": 15}},
		},
		"a restart of the exporter": {
			{xid(0), none},
			{xid(79), map[string]float64{of79 + "1": 0}},
			{xid(0), map[string]float64{of79 + "1": 0}},
			{xid(79), map[string]float64{of79 + "2": 0}},
		},
		"a page without the row changes nothing": {
			{xid(79), none},
			{"", none},
			{xid(79), none},
			{"", none},
			{xid(31), map[string]float64{of31 + "1": 45}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExporter(t, otel)
			for i, s := range steps {
				r := e.scrape(onGPU("DCGM_FI_DEV_GPU_UTIL", 1), s.row)
				assert.Equal(t, s.want, xidErrors(r), "page %d", i)
			}
		})
	}
	t.Run("last code", func(t *testing.T) {
		assert.Equal(t, []string{"gpu.xid.last{} 79"}, only(mapOnce(t, otel, xid(79)), "gpu.xid.last"))
		assert.Equal(t, []string{"gpu.xid.last{} 0"}, only(mapOnce(t, otel, xid(0)), "gpu.xid.last"))
	})
	t.Run("codes have no greatest", func(t *testing.T) {
		r := mapOnce(t, otel, onMIG(7, "DCGM_FI_DEV_XID_ERRORS", 79), onMIG(8, "DCGM_FI_DEV_XID_ERRORS", 31))
		assert.Empty(t, points(r, "GPU-0"))
		assert.Equal(t, []string{"gpu.xid.last{} 79"}, points(r, "GPU-0/7"))
		assert.Equal(t, []string{"gpu.xid.last{} 31"}, points(r, "GPU-0/8"))
		r = mapOnce(t, otel, xid(79), onGPU("DCGM_FI_DEV_XID_ERRORS", 31))
		assert.Equal(t, []string{"gpu.xid.last{} 31"}, only(r, "gpu.xid.last"), "the last row")
	})
	t.Run("a clock that is set back", func(t *testing.T) {
		e := newExporter(t, otel)
		e.scrape(xid(0))
		e.scrape(xid(79))
		e.now = e.now.Add(-time.Hour)
		for line, start := range xidErrors(e.scrape(xid(79))) {
			assert.Equal(t, of79+"1", line)
			assert.Equal(t, e.now.Sub(t0).Seconds(), start)
		}
	})
}

// TestXIDTotal: the exporter's own counts win over the derived ones.
func TestXIDTotal(t *testing.T) {
	total := func(xid string, v int) string {
		return onGPU("DCGM_EXP_XID_ERRORS_TOTAL", v, `xid="`+xid+`"`)
	}
	e := newExporter(t, otel)
	assert.Empty(t, xidErrors(e.scrape(onGPU("DCGM_EXP_XID_ERRORS_TOTAL", 0), onGPU("DCGM_FI_DEV_XID_ERRORS", 0))), "the row of no XID")
	assert.Equal(t, map[string]float64{"gpu.xid.errors{gpu.xid.code=79} 2": 0},
		xidErrors(e.scrape(total("79", 2), onGPU("DCGM_FI_DEV_XID_ERRORS", 79))), "there were none on the page before")
	assert.Equal(t, map[string]float64{"gpu.xid.errors{gpu.xid.code=79} 3": 0, "gpu.xid.errors{gpu.xid.code=31} 1": 15},
		xidErrors(e.scrape(total("79", 3), total("31", 1))))
	assert.Equal(t, map[string]float64{"gpu.xid.errors{gpu.xid.code=79} 1": 45}, xidErrors(e.scrape(total("79", 1))), "a restart")
	assert.Empty(t, xidErrors(e.scrape(total("none", 0))), "a restart, seen before the next XID")
	assert.Equal(t, map[string]float64{"gpu.xid.errors{gpu.xid.code=79} 1": 60}, xidErrors(e.scrape(total("79", 1))), "as high as it was, and new")
	assert.Empty(t, xidErrors(e.scrape(onGPU("DCGM_FI_DEV_GPU_UTIL", 1))), "a page without any count is no restart")
	assert.Equal(t, map[string]float64{"gpu.xid.errors{gpu.xid.code=79} 1": 60}, xidErrors(e.scrape(total("79", 1))))

	assert.Equal(t, map[string]float64{"gpu.xid.errors{gpu.xid.code=79} 5": 0}, xidErrors(mapOnce(t, otel, total("79", 5))))
	assert.Empty(t, xidErrors(mapOnce(t, otel, total("none", 5))))

	// When the exporter restarts, its counts are gone; the last code is DCGM's.
	e = newExporter(t, otel)
	e.scrape(onGPU("DCGM_FI_DEV_GPU_UTIL", 1))
	e.scrape(total("79", 1), onGPU("DCGM_FI_DEV_XID_ERRORS", 79))
	assert.Empty(t, xidErrors(e.scrape(onGPU("DCGM_FI_DEV_XID_ERRORS", 79))), "79 was counted already")
}
