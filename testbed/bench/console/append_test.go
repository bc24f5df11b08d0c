// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// BenchmarkAppend writes scrapes of 512 GPUs, an hour of them, into the embedded
// store and by remote write into a Prometheus server, in turns, both new. The
// CPU time is that of the process which stores: a client's encoding is not in it.
func BenchmarkAppend(b *testing.B) {
	series := fleet(512)
	all := map[string][]float64{}
	for b.Loop() {
		for range rounds {
			opened, err := openStore(b.TempDir(), "")
			require.NoError(b, err)
			embedded, p := opened.(store.Store), startPrometheus(b, b.TempDir())
			var wall, cpu [2]time.Duration
			samples := 0
			for at := time.Now().Add(-time.Hour); !at.After(time.Now()); at = at.Add(interval) {
				scrape := batch(series, []time.Time{at})
				before, began := used(b, os.Getpid()), time.Now()
				a, err := embedded.Append(context.Background(), scrape)
				wall[0] += time.Since(began)
				cpu[0] += used(b, os.Getpid()) - before
				require.NoError(b, err)
				require.Equal(b, len(scrape), a.Stored)
				before, began = used(b, p.pid), time.Now()
				require.NoError(b, p.write(scrape))
				wall[1] += time.Since(began)
				cpu[1] += used(b, p.pid) - before
				samples += len(scrape)
			}
			require.NoError(b, opened.Shutdown(context.Background()))
			rate := func(d time.Duration) float64 { return float64(samples) / d.Seconds() / 1000 }
			each := func(d time.Duration) float64 { return d.Seconds() * 1e6 / float64(samples) }
			round := figures{
				"embedded-thousand/s": rate(wall[0]), "embedded-cpu-us/sample": each(cpu[0]), "write-thousand/s": rate(wall[1]), "write-cpu-us/sample": each(cpu[1]),
				"rate-ratio": rate(wall[0]) / rate(wall[1]), "cpu-ratio": each(cpu[0]) / each(cpu[1]),
			}
			for unit, value := range round {
				all[unit] = append(all[unit], value)
			}
		}
	}
	b.ReportMetric(0, "ns/op") // means nothing here
	for unit, values := range all {
		slices.Sort(values)
		b.ReportMetric(at(values, .5), unit)
	}
}

// used is the CPU time of a process, in steps of 10 ms.
func used(b *testing.B, pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(b, err)
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	var user, system int
	_, err = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	require.NoError(b, err)
	return time.Duration(user+system) * 10 * time.Millisecond
}
