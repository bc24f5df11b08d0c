// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// last is a page with the last code alone.
func last(code float64) func(time.Time) pmetric.Metrics {
	return one(gpu{pod: "chat-0", values: map[*names.Metric]float64{&names.GPUXIDLast: code}})
}

// counted is a page of an exporter that counts.
func counted(code float64, xids map[int64]int64) func(time.Time) pmetric.Metrics {
	return one(gpu{pod: "chat-0", values: map[*names.Metric]float64{&names.GPUXIDLast: code}, xids: xids})
}

func TestXIDStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStory(start(t, deviceSet))
		s.narrate("the first code seen is not reported")
		s.every(interval, 2, counted(31, map[int64]int64{31: 4}))
		s.narrate("the same code again, and one that the catalogue does not have")
		s.every(interval, 2, counted(31, map[int64]int64{31: 5}))
		s.every(interval, 2, counted(99999, map[int64]int64{31: 5, 99999: 1}))
		s.narrate("a storm of 31: reported every five minutes")
		n := int64(5)
		s.every(interval, 25, func(at time.Time) pmetric.Metrics {
			n++
			return counted(31, map[int64]int64{31: n, 99999: 1})(at)
		})
		s.narrate("the counters are reset, and then a GPU falls off the bus")
		s.every(interval, 2, counted(0, map[int64]int64{31: 0, 99999: 0}))
		s.every(interval, 2, counted(79, map[int64]int64{31: 0, 79: 1, 99999: 0}))
		s.golden("xid")
	})
}

func TestXIDsByTheLastCode(t *testing.T) {
	feed := func(b *bench, pages ...func(time.Time) pmetric.Metrics) (all []string) {
		for _, p := range pages {
			all = append(all, brief(b.feed(p(time.Now())))...)
			all = append(all, brief(b.wait(interval))...)
		}
		return all
	}
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet)
		require.Empty(t, feed(b, last(31), last(31), last(0)))
		require.Equal(t, []string{"gpu.xid raised 79"}, feed(b, last(79), last(79), last(0)))
		// What the receiver counts from the last code is not reported twice.
		since := time.Now()
		both := func(code float64, xids map[int64]int64) func(time.Time) pmetric.Metrics {
			return one(gpu{values: map[*names.Metric]float64{&names.GPUXIDLast: code}, xids: xids, derivedSince: since})
		}
		require.Equal(t, []string{"gpu.xid raised 48"}, feed(b, both(48, map[int64]int64{48: 1}), both(48, map[int64]int64{48: 1})))
		time.Sleep(10 * time.Minute)
		require.Equal(t, []string{"gpu.xid raised 48"}, feed(b, both(48, map[int64]int64{48: 2})))
		time.Sleep(10 * time.Minute)
		// The receiver was restarted: its count begins again, with a new XID.
		since = time.Now()
		require.Equal(t, []string{"gpu.xid raised 48"}, feed(b, both(48, map[int64]int64{48: 1}), both(48, map[int64]int64{48: 1})))
		require.Zero(t, b.c.engine.Raised(), "nothing is raised, because nothing clears it")
	})
	synctest.Test(t, func(t *testing.T) {
		// Older exporters have no row before the first XID.
		b := start(t, deviceSet)
		require.Equal(t, []string{"gpu.xid raised 79"}, feed(b, one(gpu{}), one(gpu{}), last(79)))
	})
}

func TestECCAndRowRemapStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStory(start(t, deviceSet))
		ecc := func(n int64, failed float64) func(time.Time) pmetric.Metrics {
			return one(gpu{pod: "chat-0", ecc: &n, values: map[*names.Metric]float64{&names.GPURowRemapFailure: failed}})
		}
		s.narrate("the first value does not raise; the flag is a state, and does")
		s.every(interval, 2, ecc(7, 1))
		s.narrate("two more errors")
		s.every(interval, 2, ecc(9, 1))
		s.narrate("the driver is loaded again, the board was replaced")
		s.every(interval, 2, ecc(0, 0))
		s.narrate("absent says nothing; the first error since the reset is within five minutes of the last, and waits")
		s.every(interval, 2, one(gpu{}))
		s.every(interval, 20, ecc(1, 0))
		s.golden("ecc_row_remap")
	})
}

func TestThrottleStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStory(start(t, deviceSet))
		with := func(reasons ...string) func(time.Time) pmetric.Metrics {
			return one(gpu{pod: "chat-0", throttle: append([]string{}, reasons...)})
		}
		s.narrate("a power cap is no fault, and 1m45s of heat is too short")
		s.every(interval, 20, with("power_cap", "hw_slowdown"))
		s.every(interval, 8, with("sw_thermal"))
		s.every(interval, 1, with())
		s.narrate("heat, then the power brake: 2 minutes together")
		s.every(interval, 4, with("hw_thermal", "hw_slowdown"))
		s.every(interval, 5, with("hw_power_brake"))
		s.narrate("gone for 1m45s, and once more")
		s.every(interval, 8, with())
		s.every(interval, 1, with("sw_thermal"))
		s.narrate("gone for 2 minutes")
		s.every(interval, 9, with())
		s.golden("throttle")
	})
}

func TestMemoryPressureStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStory(start(t, deviceSet))
		used := func(share float64) func(time.Time) pmetric.Metrics {
			return one(gpu{pod: "chat-0", values: map[*names.Metric]float64{&names.GPUMemoryUsage: share * 1e6, &names.GPUMemoryLimit: 1e6}})
		}
		s.narrate("0.95 is not above high, 0.96 is")
		s.every(interval, 9, used(0.95))
		s.every(interval, 9, used(0.96))
		s.narrate("0.99")
		s.every(interval, 5, used(0.99))
		s.narrate("0.94 is above the hysteresis, 0.93 is not")
		s.every(interval, 5, used(0.94))
		s.every(interval, 1, one(gpu{}))
		s.every(interval, 1, used(0.93))
		s.narrate("from nothing to 0.99: critical after a minute")
		s.every(interval, 5, one(gpu{values: map[*names.Metric]float64{&names.GPUMemoryUtilization: 0.99}}))
		s.golden("memory_pressure")
	})
}

// A GPU in MIG mode has the sum of its instances: the instance is reported, once.
func TestPressureOfMIGInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet)
		full := map[*names.Metric]float64{&names.GPUMemoryUtilization: 0.99}
		var got []occurred
		for range 10 {
			b.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{{id: gpuA, values: full}, {id: gpuA + "/7", parent: gpuA, values: full}}}))
			got = append(got, b.wait(interval)...)
		}
		require.Equal(t, []string{"gpu.memory.pressure raised critical"}, brief(got))
		require.Equal(t, gpuA+"/7", got[0].resource[names.HwID])
	})
}
