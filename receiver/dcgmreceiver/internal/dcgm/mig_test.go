// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// TestMIG: the exporter repeats the board's values on every instance.
func TestMIG(t *testing.T) {
	r := mapOnce(t, otel,
		onMIG(7, "DCGM_FI_DEV_POWER_USAGE", 112.25), onMIG(8, "DCGM_FI_DEV_POWER_USAGE", 106.5),
		onMIG(7, "DCGM_FI_DEV_GPU_TEMP", 35), onMIG(8, "DCGM_FI_DEV_GPU_TEMP", 36),
		onMIG(7, "DCGM_FI_DEV_FB_USED", 10), onMIG(8, "DCGM_FI_DEV_FB_USED", 20),
		onMIG(7, "DCGM_FI_DEV_FB_FREE", 90), onMIG(8, "DCGM_FI_DEV_FB_FREE", 80),
		onMIG(7, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.5), onMIG(8, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.25),
	)
	assert.Equal(t, []string{
		"hw.gpu.memory.limit{} 209715200",
		"hw.gpu.memory.usage{} 31457280",
		"hw.gpu.memory.utilization{} 0.15",
		"hw.power{} 112.25",
		"hw.temperature{hw.sensor_location=gpu} 36",
	}, points(r, "GPU-0"))
	assert.Equal(t, []string{
		"gpu.engine.active{} 0.5",
		"hw.gpu.memory.limit{} 104857600",
		"hw.gpu.memory.usage{} 10485760",
		"hw.gpu.memory.utilization{} 0.1",
		"hw.gpu.utilization{hw.gpu.task=general} 0.5",
	}, points(r, "GPU-0/7"))
	assert.Len(t, points(r, "GPU-0/8"), 5)
	assert.Equal(t, 3, r.Devices)
	assert.Equal(t, map[string]any{
		"hw.id": "GPU-0/7", "hw.type": "gpu", "hw.vendor": "NVIDIA", "hw.model": "NVIDIA H100", "hw.parent": "GPU-0",
		"gpu.index": int64(0), "gpu.mig.instance_id": int64(7), "gpu.mig.profile": "1g.10gb",
	}, resource(r, "GPU-0/7"))
	assert.Equal(t, map[string]any{
		"hw.id": "GPU-0", "hw.type": "gpu", "hw.vendor": "NVIDIA", "hw.model": "NVIDIA H100", "gpu.index": int64(0),
	}, resource(r, "GPU-0"))
}

// TestMIGUtilization: old exporters print 0 for what NVML does not measure on an instance
// (dcgm-exporter#216). The activity of its engine counts.
func TestMIGUtilization(t *testing.T) {
	for _, engine := range []string{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"} {
		for _, zero := range []string{"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO", "dcgm_gpu_utilization"} {
			r := mapOnce(t, otel,
				onMIG(7, zero, 0), onMIG(7, "DCGM_FI_DEV_MEM_COPY_UTIL", 0), onMIG(7, "DCGM_FI_DEV_ENC_UTIL", 0), onMIG(7, "DCGM_FI_DEV_DEC_UTIL", 0),
				onMIG(7, engine, 0.98), onMIG(8, zero, 0),
			)
			assert.Equal(t, []string{"gpu.engine.active{} 0.98", "hw.gpu.utilization{hw.gpu.task=general} 0.98"}, points(r, "GPU-0/7"), zero)
			assert.Empty(t, points(r, "GPU-0/8"), "no utilization of 0")
			assert.Empty(t, points(r, "GPU-0"))
			assert.Equal(t, map[string]int{"no_sensor": 5}, refused(r), zero)
		}
	}
	assert.Equal(t, []string{"hw.gpu.utilization{hw.gpu.task=general} 0"}, points(mapOnce(t, otel, onGPU("DCGM_FI_DEV_GPU_UTIL", 0)), "GPU-0"))
}

func TestMIGOwnRowWins(t *testing.T) {
	r := mapOnce(t, otel,
		onMIG(7, "DCGM_FI_DEV_POWER_USAGE", 300), onGPU("DCGM_FI_DEV_POWER_USAGE", 200), onMIG(8, "DCGM_FI_DEV_POWER_USAGE", 400),
		onMIG(7, "DCGM_FI_DEV_FB_USED", 10), onGPU("DCGM_FI_DEV_FB_USED", 15),
	)
	assert.Equal(t, []string{"hw.gpu.memory.usage{} 15728640", "hw.power{} 200"}, points(r, "GPU-0"))
	assert.Empty(t, only(r, "hw.gpu.memory.limit"))
}

// TestMIGIncomplete: a sum over some of the instances would be a wrong number.
func TestMIGIncomplete(t *testing.T) {
	r := mapOnce(t, otel,
		onMIG(7, "DCGM_FI_DEV_FB_USED", 10), onMIG(7, "DCGM_FI_DEV_FB_FREE", 90), onMIG(7, "DCGM_FI_DEV_FB_RESERVED", 1),
		onMIG(8, "DCGM_FI_DEV_FB_USED", 20),
	)
	assert.Equal(t, []string{"hw.gpu.memory.usage{} 31457280"}, points(r, "GPU-0"))
}

// TestMIGSwitchedOff: instances of earlier pages are no part of the sum.
func TestMIGSwitchedOff(t *testing.T) {
	e := newExporter(t, otel)
	e.scrape(onMIG(7, "DCGM_FI_DEV_FB_USED", 10), onMIG(8, "DCGM_FI_DEV_FB_USED", 20))
	r := e.scrape(onMIG(7, "DCGM_FI_DEV_FB_USED", 10))
	assert.Equal(t, []string{"hw.gpu.memory.usage{} 10485760"}, points(r, "GPU-0"))
	assert.Empty(t, points(r, "GPU-0/8"))
	r = e.scrape(onGPU("DCGM_FI_DEV_GPU_UTIL", 50))
	assert.Equal(t, []string{"hw.gpu.utilization{hw.gpu.task=general} 0.5"}, points(r, "GPU-0"), "no usage of 0")
	assert.Equal(t, 1, r.Devices)
}

// TestMIGProfile: a row without the profile does not take it away, and an
// instance that is created again has the new one.
func TestMIGProfile(t *testing.T) {
	e := newExporter(t, otel)
	r := e.scrape(onMIG(7, "DCGM_FI_DEV_FB_USED", 10), onGPU("DCGM_FI_DEV_FB_FREE", 10, `GPU_I_ID="7"`))
	assert.Equal(t, "1g.10gb", resource(r, "GPU-0/7")["gpu.mig.profile"])
	r = e.scrape(onGPU("DCGM_FI_DEV_FB_USED", 10, `GPU_I_ID="7"`, `GPU_I_PROFILE="3g.40gb"`))
	assert.Equal(t, "3g.40gb", resource(r, "GPU-0/7")["gpu.mig.profile"])
}

// TestSilence: whatever an exporter had is still there when it comes back.
func TestSilence(t *testing.T) {
	e := newExporter(t, otel)
	lines := []string{"# TYPE DCGM_FI_SOME_TOTAL counter", onGPU("DCGM_FI_SOME_TOTAL", 7), onGPU("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 7)}
	e.scrape(lines...)
	for range 200 {
		e.now = e.now.Add(time.Second)
		e.target.Map(failed(e.now), here)
	}
	starts := 0
	each(e.scrape(lines...).Metrics, func(_ pcommon.Map, m pmetric.Metric, p pmetric.NumberDataPoint) {
		if m.Type() == pmetric.MetricTypeSum && m.Sum().IsMonotonic() {
			assert.Equal(t, t0, p.StartTimestamp().AsTime(), m.Name())
			starts++
		}
	})
	assert.Equal(t, 2, starts)
}
