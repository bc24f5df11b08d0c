// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// migration is a page with a mapped, an unmapped and a loose row.
var migration = []string{
	"# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).",
	"# TYPE DCGM_FI_DEV_GPU_UTIL gauge",
	onGPU("DCGM_FI_DEV_GPU_UTIL", 50, `pod="p"`),
	"# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter",
	onGPU("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 5000, `pod="p"`),
	"# TYPE DCGM_FI_DEV_SOME_TOTAL counter",
	onGPU("DCGM_FI_DEV_SOME_TOTAL", 7, `pod="p"`, `link="2"`),
	"# TYPE DCGM_FI_DEV_NVSWITCH_POWER_VDD gauge",
	`DCGM_FI_DEV_NVSWITCH_POWER_VDD{nvswitch="1",Hostname="a"} 40`,
}

func TestNamesOTel(t *testing.T) {
	r := mapOnce(t, otel, migration...)
	assert.Equal(t, []string{
		"dcgm.dev_some_total{link=2} 7",
		"hw.energy{} 5",
		"hw.gpu.utilization{hw.gpu.task=general} 0.5",
	}, points(r, "GPU-0"))
	assert.Contains(t, exporterPoints(r), "dcgm.dev_nvswitch_power_vdd{nvswitch=1} 40")
	assert.Empty(t, refused(r))
}

func TestUnmappedDrop(t *testing.T) {
	opts := otel
	opts.DropUnmapped = true
	r := mapOnce(t, opts, migration...)
	assert.Equal(t, []string{"hw.energy{} 5", "hw.gpu.utilization{hw.gpu.task=general} 0.5"}, points(r, "GPU-0"))
	assert.Len(t, exporterPoints(r), 4, "nothing but the exporter's own")
	assert.Equal(t, map[string]int{"unmapped": 2}, refused(r))
}

// TestNamesDCGM: families keep name, value and labels, and nothing may make a
// Prometheus exporter add a suffix: no unit, no monotonic sum.
func TestNamesDCGM(t *testing.T) {
	opts := otel
	opts.OTel, opts.AsIs = false, true
	r := mapOnce(t, opts, migration...)
	assert.Equal(t, []string{
		"DCGM_FI_DEV_GPU_UTIL{UUID=GPU-0,gpu=0,modelName=NVIDIA H100,pod=p} 50",
		"DCGM_FI_DEV_SOME_TOTAL{UUID=GPU-0,gpu=0,link=2,modelName=NVIDIA H100,pod=p} 7",
		"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{UUID=GPU-0,gpu=0,modelName=NVIDIA H100,pod=p} 5000",
	}, points(r, "GPU-0"))
	assert.Contains(t, exporterPoints(r), "DCGM_FI_DEV_NVSWITCH_POWER_VDD{Hostname=a,nvswitch=1} 40")
	assert.Equal(t, "p", resource(r, "GPU-0")["pod"])
	each(r.Metrics, func(res pcommon.Map, m pmetric.Metric, p pmetric.NumberDataPoint) {
		if _, device := res.Get(names.HwID); !device {
			return
		}
		assert.Equal(t, pmetric.MetricTypeGauge, m.Type(), m.Name())
		assert.Empty(t, m.Unit(), m.Name())
		id, _ := p.Attributes().Get(names.HwID)
		assert.Equal(t, "GPU-0", id.Str(), m.Name())
		if m.Name() == "DCGM_FI_DEV_GPU_UTIL" {
			assert.Equal(t, "GPU utilization (in %).", m.Description())
		}
	})
}

func TestNamesBoth(t *testing.T) {
	opts := otel
	opts.AsIs = true
	r := mapOnce(t, opts, migration...)
	dcgm := otel
	dcgm.OTel, dcgm.AsIs = false, true
	assert.ElementsMatch(t,
		append(points(mapOnce(t, dcgm, migration...), "GPU-0"), points(mapOnce(t, otel, migration...), "GPU-0")...),
		points(r, "GPU-0"))
	assert.Len(t, exporterPoints(r), 4+2)
}

// TestSharedInDCGMNames: each owner's row is a series of its own there.
func TestSharedInDCGMNames(t *testing.T) {
	opts := otel
	opts.AsIs = true
	r := mapOnce(t, opts, onGPU("DCGM_FI_DEV_GPU_UTIL", 50, `pod="a"`), onGPU("DCGM_FI_DEV_GPU_UTIL", 50, `pod="b"`),
		onGPU("DCGM_FI_SOME_FIELD", 1, `pod="a"`), onGPU("DCGM_FI_SOME_FIELD", 1, `pod="b"`))
	assert.Len(t, only(r, "DCGM_FI_DEV_GPU_UTIL"), 2)
	assert.Len(t, only(r, "hw.gpu.utilization"), 1)
	assert.Equal(t, []string{"dcgm.some_field{} 1"}, only(r, "dcgm.some_field"), "a device has a series once")
}

func TestUnmappedKinds(t *testing.T) {
	e := newExporter(t, otel)
	page := func(v int) devicemap.Result {
		return e.scrape(
			"# TYPE DCGM_FI_DEV_SOME_TOTAL counter", onGPU("DCGM_FI_DEV_SOME_TOTAL", v),
			"# TYPE DCGM_FI_DEV_SOME_GAUGE gauge", onGPU("DCGM_FI_DEV_SOME_GAUGE", v),
			"# TYPE DCGM_EXP_XID_ERRORS_COUNT counter", onGPU("DCGM_EXP_XID_ERRORS_COUNT", v, `xid="79"`, `window_size_in_ms="300000"`),
		)
	}
	kinds := func(r devicemap.Result) map[string]string {
		got := map[string]string{}
		each(r.Metrics, func(res pcommon.Map, m pmetric.Metric, p pmetric.NumberDataPoint) {
			if _, device := res.Get(names.HwID); !device {
				return
			}
			got[m.Name()] = m.Type().String()
			if m.Type() == pmetric.MetricTypeSum {
				assert.True(t, m.Sum().IsMonotonic())
				got[m.Name()] += " from " + p.StartTimestamp().AsTime().Sub(t0).String()
			}
		})
		return got
	}
	assert.Equal(t, map[string]string{
		"dcgm.dev_some_total": "Sum from 0s", "dcgm.dev_some_gauge": "Gauge", "dcgm.exp_xid_errors_count": "Gauge",
	}, kinds(page(5)))
	assert.Equal(t, "Sum from 0s", kinds(page(6))["dcgm.dev_some_total"])
	assert.Equal(t, "Sum from 30s", kinds(page(1))["dcgm.dev_some_total"], "a reset")
}

// TestLoose: rows without a UUID belong to no device.
func TestLoose(t *testing.T) {
	r := mapOnce(t, otel,
		`DCGM_FI_DEV_CPU_TEMP_CURRENT{cpu="0",Hostname="a"} 40`,
		`DCGM_FI_DEV_CPU_TEMP_CURRENT{cpu="1",Hostname="a"} 41`,
		`DCGM_FI_DEV_SOMETHING{gpu="0"} 1`,
		`DCGM_FI_DEV_SOMETHING{gpu="1"} 2`,
		`DCGM_FI_DEV_GPU_UTIL{gpu="0"} 50`,
		`go_goroutines 12`,
		`process_cpu_seconds_total 1`,
		`DCGM_FI_DEV_SOMETHING{UUID=""} 3`,
	)
	assert.Equal(t, 0, r.Devices)
	assert.Equal(t, []string{
		"dcgm.dev_cpu_temp_current{cpu=0} 40",
		"dcgm.dev_cpu_temp_current{cpu=1} 41",
		"dcgm.dev_something{gpu=0} 1",
		"dcgm.dev_something{gpu=1} 2",
		"dcgm.dev_something{} 3",
		"gpu.exporter.scrape.duration{} 0.25",
		"gpu.exporter.scrape.samples{} 8",
		"gpu.exporter.up{} 1",
	}, exporterPoints(r))
	assert.Equal(t, map[string]int{"no_device": 1, "not_dcgm": 2}, refused(r))
}

// TestUnmappedLabels: labels of identity and owner are no attributes of points.
func TestUnmappedLabels(t *testing.T) {
	r := mapOnce(t, otel, onGPU("DCGM_FI_SOME_FIELD", 1, `pod="p",app="llm",pod_label_a="b",hpc_job="7",DCGM_FI_DRIVER_VERSION="580",err_msg="x",link="2","hw.id"="GPU-9"`))
	assert.Equal(t, []string{"dcgm.some_field{link=2} 1"}, points(r, "GPU-0"))
	r = mapOnce(t, otel, `DCGM_FI_SOME_FIELD{cpu="1",app="llm",gpu="2"} 1`)
	assert.Contains(t, exporterPoints(r), "dcgm.some_field{app=llm,cpu=1,gpu=2} 1")
}

// TestOneName: two families with names that differ only in case are one series.
func TestOneName(t *testing.T) {
	r := mapOnce(t, otel, onGPU("DCGM_FI_SOME_FIELD", 1), onGPU("dcgm_some_field", 2), onGPU("DCGM_SOME_FIELD", 3))
	assert.Len(t, points(r, "GPU-0"), 1)
}
