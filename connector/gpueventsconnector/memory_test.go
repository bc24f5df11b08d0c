// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkMemory is what a device costs that is watched, its share of its
// exporter and node included, when the page it was on is gone.
func BenchmarkMemory(b *testing.B) {
	const devices = 8000
	now := time.Now()
	cfg := createDefaultConfig().(*Config)
	cfg.Rules = []RuleSet{RuleSetDevice, RuleSetService}
	for b.Loop() {
		before := heap()
		e := newEngine(cfg)
		e.Consume(fleetPages(devices, now), now)
		e.Tick(now.Add(2 * time.Second))
		require.Equal(b, devices, e.Subjects()["device"])
		b.ReportMetric(float64(heap()-before)/devices, "B/device")
		runtime.KeepAlive(e)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
