// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// BenchmarkMemory is the cost of a device with an owner and telemetry.
func BenchmarkMemory(b *testing.B) {
	const devices = 10_000
	for b.Loop() {
		before := heap()
		k, ids, _ := fleet(devices)
		b.ReportMetric(float64(heap()-before)/devices, "B/device")
		runtime.KeepAlive(k)
		runtime.KeepAlive(ids)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
