// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package beside

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	nvmllab "github.com/otelcol-gpu/otelcol-gpu/testbed/nvml"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/nvml/nvmlrun"
)

const (
	benchSettle  = 3 * time.Second // after the start, not measured
	benchMeasure = 15 * time.Second
)

// BenchmarkScrape compares the CPU time of a scrape of 8 H100, every second, by the dcgm and
// by the nvml receiver. Run it with -benchtime 1x. Of dcgm, it has the HTTP server of a page
// that does not change, and not the exporter; of nvml not the helper, most of which is the
// library. Both have a copy of the points.
func BenchmarkScrape(b *testing.B) {
	lab := nvmllab.Start(b, nvmllab.Options{Driver: "575", Boards: 8})
	b.Run("dcgm", func(b *testing.B) {
		page, err := lab.Fleet.Page(lab.Node, lab.Fleet.Now())
		require.NoError(b, err)
		points, stop := startDCGM(b, lab.Node, func() ([]byte, error) { return page, nil })
		report(b, func() int { return len(points.all()) })
		stop()
		b.ReportMetric(float64(points.all()[0].DataPointCount()), "points")
	})
	b.Run("nvml", func(b *testing.B) {
		run := nvmlrun.Start(b, nvmlrun.Keys(lab, nil))
		report(b, func() int { return len(run.Scrapes()) })
		run.Stop()
		scrapes := run.Scrapes()
		b.ReportMetric(float64(scrapes[len(scrapes)-1].DataPointCount()), "points")
	})
}

// report measures scrapes for a while.
func report(b *testing.B, scrapes func() int) {
	time.Sleep(benchSettle)
	n, began := scrapes(), ownCPU(b)
	time.Sleep(benchMeasure)
	used, of := ownCPU(b)-began, float64(scrapes()-n)
	b.ReportMetric(0, "ns/op") // means nothing here
	b.ReportMetric(of, "scrapes")
	b.ReportMetric(float64(used.Microseconds())/of, "cpu-us/scrape")
}

func ownCPU(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
