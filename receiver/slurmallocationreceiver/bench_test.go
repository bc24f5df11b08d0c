// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package slurmallocationreceiver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver/internal/metadata"
)

// BenchmarkJobs starts and ends jobs on a node of 8 boards, an end and a start at a time, 10,000
// an hour at random moments, 5 times as fast. Milliseconds are from the moment that Prolog has
// renamed its file until gpu.allocation with the job is handed on. MB are those in use afterwards.
func BenchmarkJobs(b *testing.B) {
	const jobs, apart = 300, 720 * time.Millisecond / 5
	cfg := createDefaultConfig().(*Config)
	cfg.Directory, cfg.NodeName = filepath.Join(b.TempDir(), "jobs"), "n1"
	cfg.RootPath = b.TempDir()
	for i := range 8 {
		folder := filepath.Join(cfg.RootPath, fmt.Sprintf("proc/driver/nvidia/gpus/0000:%02x:00.0", 16+i))
		require.NoError(b, os.MkdirAll(folder, 0o755))
		require.NoError(b, os.WriteFile(filepath.Join(folder, "information"), fmt.Appendf(nil, "GPU UUID: \t %s\nDevice Minor: \t %d\n", uuid(i), i), 0o644))
	}
	require.NoError(b, os.MkdirAll(filepath.Join(cfg.Directory, "names"), 0o755))
	seen := make(chan string, 4096)
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		for _, rm := range md.ResourceMetrics().All() {
			if id := points.Str(rm.Resource().Attributes(), names.SlurmJobID); id != "" {
				seen <- id
			}
		}
		return nil
	})
	require.NoError(b, err)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r, err := NewFactory().CreateMetrics(b.Context(), receivertest.NewNopSettings(metadata.Type), cfg, next)
	require.NoError(b, err)
	require.NoError(b, r.Start(b.Context(), componenttest.NewNopHost()))
	random := rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		var took []float64
		board := make([]int, 8)
		for job := 1; job <= jobs; job++ {
			time.Sleep(time.Duration(random.Float64() * 2 * float64(apart)))
			at := random.IntN(8)
			if board[at] != 0 {
				require.NoError(b, os.Remove(filepath.Join(cfg.Directory, fmt.Sprint(board[at], ".json"))))
			}
			board[at] = job
			half := filepath.Join(cfg.Directory, ".half")
			text := fmt.Appendf(nil, `{"v":1,"job":%d,"uid":%d,"user":"ada","account":"physics","partition":"gpu","cluster":"hpc","restarts":0,"gpus":"%d","visible":""}`, job, os.Getuid(), at)
			require.NoError(b, os.WriteFile(half, text, 0o644))
			require.NoError(b, os.Rename(half, filepath.Join(cfg.Directory, fmt.Sprint(job, ".json"))))
			for begin := time.Now(); ; {
				if id := <-seen; id == fmt.Sprint(job) {
					took = append(took, float64(time.Since(begin).Microseconds())/1e3)
					break
				}
			}
		}
		for _, job := range board {
			_ = os.Remove(filepath.Join(cfg.Directory, fmt.Sprint(job, ".json")))
		}
		slices.Sort(took)
		b.ReportMetric(took[len(took)/2], "ms-median")
		b.ReportMetric(took[len(took)-1], "ms-most")
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc)/1e6-float64(before.HeapAlloc)/1e6, "MB")
	require.NoError(b, r.Shutdown(b.Context()))
}
