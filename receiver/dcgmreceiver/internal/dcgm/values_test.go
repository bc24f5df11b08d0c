// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvidia"
)

// TestEverySpelling puts each field alone on a page, under each of its names and
// with a wrong TYPE, and expects the same series every time.
func TestEverySpelling(t *testing.T) {
	for id, f := range Table.Fields {
		if f.Label != "" {
			continue // TestThrottle, TestHealth, TestXIDTotal, TestVariants
		}
		want := points(mapOnce(t, otel, onGPU(f.Name, 1)), "GPU-0")
		switch devicetable.ID(id) {
		case nvidia.FBFree: // gives a limit together with others
			assert.Empty(t, want)
		default:
			assert.NotEmpty(t, want, f.Name)
		}
		for _, name := range append([]string{f.Name}, f.Aliases...) { // variants: TestVariants
			for _, typ := range []string{"gauge", "counter", "untyped"} {
				r := mapOnce(t, otel, "# TYPE "+name+" "+typ, onGPU(name, 1))
				assert.Equal(t, want, points(r, "GPU-0"), "%s as %s", name, typ)
				assert.Empty(t, refused(r), name)
			}
		}
	}
}

// TestKinds checks the kind on the wire: the field's true one.
func TestKinds(t *testing.T) {
	lines := []string{"# TYPE DCGM_FI_DEV_RETIRED_PENDING counter", "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION gauge"}
	for _, f := range Table.Fields {
		if f.Label == "" {
			lines = append(lines, onGPU(f.Name, 1))
		}
	}
	kinds := map[string]names.Kind{}
	for _, s := range Table.Series {
		kinds[s.Metric.Name] = s.Metric.Kind
	}
	for _, d := range Table.Derived {
		kinds[d.Metric.Name] = d.Metric.Kind
	}
	seen := map[string]bool{}
	each(mapOnce(t, otel, lines...).Metrics, func(res pcommon.Map, m pmetric.Metric, p pmetric.NumberDataPoint) {
		if _, ok := res.Get(names.HwID); !ok {
			return
		}
		seen[m.Name()] = true
		sum := m.Type() == pmetric.MetricTypeSum
		assert.Equal(t, kinds[m.Name()] != names.Gauge, sum, m.Name())
		if sum {
			assert.Equal(t, pmetric.AggregationTemporalityCumulative, m.Sum().AggregationTemporality(), m.Name())
			assert.Equal(t, kinds[m.Name()] == names.Counter, m.Sum().IsMonotonic(), m.Name())
		}
		assert.Equal(t, kinds[m.Name()] == names.Counter, p.StartTimestamp() != 0, "start time of %s", m.Name())
		assert.NotEmpty(t, m.Unit(), m.Name())
		assert.NotEmpty(t, m.Description(), m.Name())
		id, _ := p.Attributes().Get(names.HwID)
		assert.Equal(t, "GPU-0", id.Str(), m.Name())
		_, generic := p.Attributes().Get(names.HwType)
		assert.Equal(t, strings.HasPrefix(m.Name(), "hw.") && !strings.HasPrefix(m.Name(), "hw.gpu."), generic, m.Name())
	})
	assert.Len(t, seen, len(kinds)-4, "all but those of rows with a label: gpu.health.status, gpu.nvlink.lane.throughput, gpu.nvlink.peers and gpu.xid.errors")
}

func TestUnits(t *testing.T) {
	r := mapOnce(t, otel,
		onGPU("DCGM_FI_DEV_GPU_UTIL", 29),
		onGPU("DCGM_FI_DEV_FB_USED", 1000), onGPU("DCGM_FI_DEV_FB_FREE", 2000), onGPU("DCGM_FI_DEV_FB_RESERVED", 1000),
		onGPU("DCGM_FI_DEV_POWER_USAGE", "697.234000"),
		onGPU("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1234567),
		onGPU("DCGM_FI_DEV_SM_CLOCK", 1980),
		onGPU("DCGM_FI_DEV_GPU_TEMP", -5),
		onGPU("DCGM_FI_DEV_POWER_VIOLATION", 2500000000),
		onGPU("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", 100),
		onGPU("DCGM_FI_DEV_NVLINK_COUNT_TX_BYTES", 7),
	)
	assert.Equal(t, []string{
		"gpu.clock.frequency{gpu.clock.domain=sm} 1980000000",
		"gpu.memory.reserved{} 1048576000",
		"gpu.nvlink.throughput{} 102400000",
		"gpu.throttle.duration{gpu.throttle.reason=power} 2.5",
		"hw.energy{} 1234.567",
		"hw.gpu.io{gpu.io.link=nvlink,network.io.direction=transmit} 7",
		"hw.gpu.memory.limit{} 4194304000",
		"hw.gpu.memory.usage{} 1048576000",
		"hw.gpu.memory.utilization{} 0.25",
		"hw.gpu.utilization{hw.gpu.task=general} 0.29",
		"hw.power{} 697.234",
		"hw.temperature{hw.sensor_location=gpu} -5",
	}, points(r, "GPU-0"))
}

// TestBounds: DCGM at times prints figures that no device can have (go-dcgm#75, DCGM#152,
// DCGM#199). They are no data. A ratio that is a little above 1 is 1.
func TestBounds(t *testing.T) {
	most := map[string]string{
		"%": "100", "1": "1.05", "W": "10000", "Cel": "200", "MHz": "100000", "Hz": "1e11",
		"{code}": "2147483647", "flag": "2147483647", "{lane}": "2147483647", "{generation}": "2147483647",
	}
	for name, f := range everyName() {
		if f.Label != "" || most[f.Unit] == "" {
			continue
		}
		for _, v := range []any{"4294967295", "153217000000000000"} {
			if f.Unit == "Hz" && v == "4294967295" {
				continue // 4.3 GHz
			}
			r := mapOnce(t, otel, onGPU(name, v))
			assert.Empty(t, points(r, "GPU-0"), "%s %v", name, v)
			assert.Equal(t, map[string]int{"implausible": 1}, refused(r), "%s %v", name, v)
		}
		assert.Empty(t, refused(mapOnce(t, otel, onGPU(name, most[f.Unit]))), name)
	}
	r := mapOnce(t, otel,
		onGPU("DCGM_FI_DEV_GPU_UTIL", 153217), onGPU("DCGM_FI_DEV_MEM_COPY_UTIL", 101), onGPU("DCGM_FI_PROF_SM_ACTIVE", "1.741236"),
		onGPU("DCGM_FI_PROF_DRAM_ACTIVE", "1.02"), onGPU("DCGM_FI_DEV_FAN_SPEED", 110), onGPU("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 4294967295),
	)
	assert.Equal(t, []string{
		"gpu.dram.active{} 1",
		"gpu.memory_controller.utilization{} 1",
		"hw.fan.speed_ratio{} 1.1",
	}, points(r, "GPU-0"))
	assert.Equal(t, map[string]int{"implausible": 2, "sentinel": 1}, refused(r))
	assert.Equal(t, "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-0\",gpu=\"0\",modelName=\"NVIDIA H100\"} 153217", r.Implausible, "what is logged")
}

// everyName are the fields by each of their names, in the unit of the name.
func everyName() map[string]*devicetable.Field {
	all := map[string]*devicetable.Field{}
	for _, f := range Table.Fields {
		names := append([]string{f.Name}, f.Aliases...)
		for _, v := range f.Variants {
			names = append(names, v.Name)
		}
		for _, name := range names {
			if named, known := Table.Named(name); known && named.Or == nil {
				all[name] = named.Field
			}
		}
	}
	return all
}

func TestMemoryLimit(t *testing.T) {
	used, free := onGPU("DCGM_FI_DEV_FB_USED", 1), onGPU("DCGM_FI_DEV_FB_FREE", 2)
	reserved, total := onGPU("DCGM_FI_DEV_FB_RESERVED", 4), onGPU("DCGM_FI_DEV_FB_TOTAL", 8)
	for name, tt := range map[string]struct {
		page []string
		want []string
	}{
		"total wins":            {[]string{used, free, reserved, total}, []string{"hw.gpu.memory.limit{} 8388608"}},
		"three parts":           {[]string{used, free, reserved}, []string{"hw.gpu.memory.limit{} 7340032"}},
		"a driver before 510":   {[]string{used, free}, []string{"hw.gpu.memory.limit{} 3145728"}},
		"free is missing":       {[]string{used, reserved}, []string{}},
		"used is not supported": {[]string{onGPU("DCGM_FI_DEV_FB_USED", "9223372036854775794"), free}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, only(mapOnce(t, otel, tt.page...), "hw.gpu.memory.limit"))
		})
	}
	assert.Empty(t, only(mapOnce(t, otel, onGPU("DCGM_FI_DEV_FB_USED", 0), onGPU("DCGM_FI_DEV_FB_FREE", 0)), "hw.gpu.memory.utilization"),
		"nothing of nothing is no ratio")
}

// TestSources checks fields that stand in for others.
func TestSources(t *testing.T) {
	engine := onGPU("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.5)
	assert.Equal(t, []string{"hw.gpu.utilization{hw.gpu.task=general} 0.5"}, only(mapOnce(t, otel, engine), "hw.gpu.utilization"))
	assert.Equal(t, []string{"hw.gpu.utilization{hw.gpu.task=general} 0.9"},
		only(mapOnce(t, otel, engine, onGPU("DCGM_FI_DEV_GPU_UTIL", 90)), "hw.gpu.utilization"))

	assert.Equal(t, []string{"gpu.nvlink.throughput{network.io.direction=transmit} 3"},
		only(mapOnce(t, otel, onGPU("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", 100), onGPU("DCGM_FI_PROF_NVLINK_TX_BYTES", 3)), "gpu.nvlink.throughput"))

}

// TestTwoNames: of two names of one quantity on a page the one with the finer unit counts,
// whatever the values and the order of the rows.
func TestTwoNames(t *testing.T) {
	for _, tt := range []struct{ metric, finer, coarser, want string }{
		{"hw.energy", onGPU("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 12345), onGPU("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 12), "hw.energy{} 12.345"},
		{"gpu.clock.frequency", onGPU("DCGM_FI_DEV_SM_CLOCK_HERTZ", 1500000), onGPU("DCGM_FI_DEV_SM_CLOCK", 2), "gpu.clock.frequency{gpu.clock.domain=sm} 1500000"},
		{"hw.gpu.memory.usage", onGPU("DCGM_FI_DEV_FB_USED_BYTES", 1048577), onGPU("DCGM_FI_DEV_FB_USED", 2), "hw.gpu.memory.usage{} 1048577"},
		{"hw.gpu.utilization", onGPU("DCGM_FI_DEV_GPU_UTIL", 37), onGPU("DCGM_FI_DEV_GPU_UTIL_RATIO", "0.380000"), "hw.gpu.utilization{hw.gpu.task=general} 0.37"},
		{"gpu.throttle.duration", onGPU("DCGM_FI_DEV_POWER_VIOLATION", 1500), onGPU("DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL", "0.000002"), "gpu.throttle.duration{gpu.throttle.reason=power} 1.5e-06"},
	} {
		assert.Equal(t, []string{tt.want}, only(mapOnce(t, otel, tt.finer, tt.coarser), tt.metric))
		assert.Equal(t, []string{tt.want}, only(mapOnce(t, otel, tt.coarser, tt.finer), tt.metric))
	}
}

// TestAnotherNameIsNoReset: an exporter that is replaced by one of another version prints a
// counter in a coarser unit, which is no reset although the number may be smaller.
func TestAnotherNameIsNoReset(t *testing.T) {
	e := newExporter(t, otel)
	read := func(line string) (v, start float64) {
		each(e.scrape(line).Metrics, func(_ pcommon.Map, m pmetric.Metric, p pmetric.NumberDataPoint) {
			if m.Name() == names.HwEnergy.Name {
				v, start = p.DoubleValue(), p.StartTimestamp().AsTime().Sub(t0).Seconds()
			}
		})
		return v, start
	}
	for _, tt := range []struct {
		line     string
		v, start float64
	}{
		{onGPU("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 5000700), 5000.7, 0},
		{onGPU("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 5000), 5000.7, 0},
		{onGPU("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 5001), 5001, 0},
		{onGPU("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 5001200), 5001.2, 0},
		{onGPU("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 5000), 5000, 60},
	} {
		v, start := read(tt.line)
		assert.Equal(t, tt.v, v, tt.line)
		assert.Equal(t, tt.start, start, tt.line)
	}
}

// TestNoValue checks that what is no value becomes no point and is counted.
func TestNoValue(t *testing.T) {
	for _, tt := range []struct {
		family, value, reason string
	}{
		{"DCGM_FI_DEV_GPU_TEMP", "9223372036854775792", "sentinel"},
		{"DCGM_FI_DEV_GPU_TEMP", "9223372036854775794", "sentinel"},
		{"DCGM_FI_DEV_GPU_TEMP", "2147483634", "sentinel"},
		{"DCGM_FI_DEV_POWER_USAGE", "140737488355328.000000", "sentinel"},
		{"DCGM_FI_DEV_POWER_USAGE", "140737488355330.000000", "sentinel"},
		{"DCGM_FI_DEV_FB_USED", "1e18", "sentinel"},
		{"DCGM_FI_SOME_FIELD", "140737488355329", "sentinel"},
		{"DCGM_FI_SOME_FIELD", "9.223372036854776e+18", "sentinel"},
		{"DCGM_FI_DEV_POWER_USAGE", "NaN", "not_a_number"},
		{"DCGM_FI_DEV_POWER_USAGE", "+Inf", "not_a_number"},
		{"DCGM_FI_SOME_FIELD", "-Inf", "not_a_number"},
		{"DCGM_FI_DEV_POWER_USAGE", "-1", "negative"},
		{"DCGM_FI_DEV_FB_USED", "-1", "negative"},
		{"DCGM_FI_DEV_MEMORY_TEMP", "0", "no_sensor"},
		{"DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", "0", "no_sensor"},
	} {
		t.Run(tt.family+" "+tt.value, func(t *testing.T) {
			r := mapOnce(t, otel, onGPU(tt.family, tt.value), onGPU("DCGM_FI_DEV_GPU_UTIL", 0))
			assert.Equal(t, []string{"hw.gpu.utilization{hw.gpu.task=general} 0"}, points(r, "GPU-0"), "the neighbour stays, and 0 is data")
			assert.Equal(t, map[string]int{tt.reason: 1}, refused(r))
		})
	}
	t.Run("values near the sentinels are data", func(t *testing.T) {
		r := mapOnce(t, otel,
			onGPU("DCGM_FI_DEV_NVLINK_COUNT_TX_BYTES", 140737488355328), // an integer field
			onGPU("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 2147483636),
			onGPU("DCGM_FI_SOME_FIELD", -4),
		)
		assert.Len(t, points(r, "GPU-0"), 3)
		assert.Empty(t, refused(r))
	})
}

// TestWrongTypes: DCGM has no histograms. A mistyped family is read like any
// other; the parts of a histogram or a summary are no values of a field.
func TestWrongTypes(t *testing.T) {
	r := mapOnce(t, otel,
		"# TYPE DCGM_FI_DEV_GPU_UTIL histogram", onGPU("DCGM_FI_DEV_GPU_UTIL", 50),
		"# TYPE DCGM_FI_DEV_GPU_TEMP summary", onGPU("DCGM_FI_DEV_GPU_TEMP", 40),
		"# TYPE DCGM_FI_SOME_FIELD histogram", onGPU("DCGM_FI_SOME_FIELD", 1),
		onGPU("DCGM_FI_SOME_FIELD_bucket", 1, `le="1"`), onGPU("DCGM_FI_SOME_FIELD_sum", 1), onGPU("DCGM_FI_SOME_FIELD_count", 1),
		"# TYPE DCGM_FI_OTHER_FIELD summary", onGPU("DCGM_FI_OTHER_FIELD", 1, `quantile="0.5"`),
		onGPU("DCGM_FI_GAUGE_sum", 1),
	)
	assert.Equal(t, []string{
		"dcgm.gauge_sum{} 1",
		"dcgm.some_field{} 1",
		"hw.gpu.utilization{hw.gpu.task=general} 0.5",
		"hw.temperature{hw.sensor_location=gpu} 40",
	}, points(r, "GPU-0"))
	assert.Equal(t, map[string]int{"wrong_type": 4}, refused(r))
}

// TestDuplicates: of rows for one field of one device the greater wins.
func TestDuplicates(t *testing.T) {
	r := mapOnce(t, otel, onGPU("DCGM_FI_DEV_GPU_UTIL", 50), onGPU("DCGM_FI_DEV_GPU_UTIL", 70), onGPU("DCGM_FI_DEV_GPU_UTIL", 60))
	assert.Equal(t, []string{"hw.gpu.utilization{hw.gpu.task=general} 0.7"}, points(r, "GPU-0"))
}

// TestCounters follows the start time of a counter over a reset and a clock that
// is set back.
func TestCounters(t *testing.T) {
	e := newExporter(t, otel)
	start := func(r devicemap.Result) (seconds float64) {
		each(r.Metrics, func(_ pcommon.Map, m pmetric.Metric, p pmetric.NumberDataPoint) {
			if m.Name() == names.HwEnergy.Name {
				assert.LessOrEqual(t, p.StartTimestamp(), p.Timestamp())
				seconds = p.StartTimestamp().AsTime().Sub(t0).Seconds()
			}
		})
		return seconds
	}
	energy := func(v int) string { return onGPU("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", v) }
	assert.Equal(t, 0.0, start(e.scrape(energy(5000))), "nobody knows when it began")
	assert.Equal(t, 0.0, start(e.scrape(energy(6000))))
	assert.Equal(t, 0.0, start(e.scrape(energy(6000))))
	assert.Equal(t, 45.0, start(e.scrape(energy(100))), "the driver was loaded again")
	assert.Equal(t, 45.0, start(e.scrape(energy(200))))
	e.scrape(onGPU("DCGM_FI_DEV_GPU_UTIL", 1))
	assert.Equal(t, 45.0, start(e.scrape(energy(300))), "a page without it is no reset")
	e.now = e.now.Add(-time.Hour)
	assert.Equal(t, e.now.Add(interval).Sub(t0).Seconds(), start(e.scrape(energy(400))), "the clock was set back")
	e.now = e.now.Add(2 * time.Hour)
	assert.Less(t, start(e.scrape(energy(500))), 0.0, "the clock was set forward")
}
