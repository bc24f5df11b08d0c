// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package usagelog

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/costreport"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

const benchServices = 1000

// hourOf is a full hour of 1,000 services with 4 GPUs each.
func hourOf(services []string, hour int) []usage.Row {
	rows := make([]usage.Row, len(services))
	for i, name := range services {
		rows[i] = usage.Row{
			Key: usage.Key{
				Cluster: "prod-eu-1", Model: "NVIDIA H100 80GB HBM3", HostType: "p5.48xlarge", Region: "eu-north-1", CapacityType: "on_demand", NodePool: "gpu",
				State: usage.Held, Namespace: "team-" + name[len(name)-2:], Service: name, Tenant: "team-" + name[len(name)-2:],
				Currency: "USD", RateNano: 23_600_000_000, RatePer: 8, Kind: "list",
			},
			Hour: start.Add(time.Duration(hour) * time.Hour), Revision: 1,
			Amounts: usage.Amounts{Time: 14_400_000, Used: 9_876_543, Idle: 600_000, Unmeasured: 12_000, Energy: [3]int64{7_200_000_123, 0, 0}, Carbon: 912_345_678},
		}
	}
	return rows
}

func names() []string {
	all := make([]string, benchServices)
	for i := range all {
		all[i] = fmt.Sprintf("inference-service-%04d", i)
	}
	return all
}

// fill keeps 35 days of 1,000 services, and what they became before.
func fill(b *testing.B, days int) (*tested, string) {
	directory := b.TempDir()
	l := open(b, directory, func(o *Options) { o.MaxBytes = 256 << 20 })
	services := names()
	for hour := range days * 24 {
		l.add(hourOf(services, hour)...)
	}
	return l, directory
}

func BenchmarkAppendHour(b *testing.B) {
	l := open(b, b.TempDir(), func(o *Options) { o.MaxBytes = 1 << 30 })
	services := names()
	for hour := 0; b.Loop(); hour++ {
		l.add(hourOf(services, hour)...)
	}
}

// BenchmarkMonth makes a report of 30 days by service.
func BenchmarkMonth(b *testing.B) {
	before := heap()
	l, directory := fill(b, 36)
	taken := float64(heap()-before) / (1 << 20)
	to := start.Add(36 * 24 * time.Hour)
	b.Run("rows", func(b *testing.B) {
		for b.Loop() {
			n := 0
			require.NoError(b, l.Query(b.Context(), store.UsageQuery{From: to.Add(-720 * time.Hour), To: to}, func(*usage.Row) { n++ }))
			require.Equal(b, 720_000, n)
		}
		b.ReportMetric(taken, "MiB-heap")
		b.ReportMetric(float64(l.Bytes())/(1<<20), "MiB-disk")
		b.ReportMetric(float64(l.Len()), "rows")
	})
	b.Run("report", func(b *testing.B) {
		for b.Loop() {
			r := costreport.New(costreport.Options{By: costreport.ByService})
			require.NoError(b, l.Query(b.Context(), store.UsageQuery{From: to.Add(-720 * time.Hour), To: to}, r.Add))
			require.Len(b, r.Report().Lines, benchServices+4)
		}
	})
	require.NoError(b, l.Close())
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			require.Equal(b, l.Len(), open(b, directory, nil).Len())
		}
	})
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
