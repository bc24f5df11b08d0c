// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

const (
	seriesOfGPU = 60
	interval    = 15 * time.Second
)

// gpus are the series of a fleet, without samples: 8 GPUs a pod, 4 pods a service.
func gpus(n int) []store.Series {
	out := make([]store.Series, 0, n*seriesOfGPU)
	for gpu := range n {
		for metric := range seriesOfGPU {
			out = append(out, store.Series{
				Labels: labels.FromStrings("__name__", fmt.Sprintf("hw_gpu_metric_%02d_ratio", metric),
					"hw_id", fmt.Sprintf("GPU-%08d-0000-0000-0000-000000000000", gpu), "hw_model", "NVIDIA H200",
					"k8s_cluster_name", "prod", "k8s_namespace_name", "ml", "k8s_node_name", fmt.Sprintf("node-%04d", gpu/8),
					"k8s_pod_name", fmt.Sprintf("model-%04d-0", gpu/8), "service_name", fmt.Sprintf("model-%04d", gpu/32)),
				Samples: make([]store.Sample, 1),
			})
		}
	}
	return out
}

// fill gives every series a sample at a time.
func fill(series []store.Series, at time.Time) {
	for i := range series {
		series[i].Samples[0] = store.Sample{Time: at.UnixMilli(), Value: float64((at.Unix()/15*7+int64(i)*13)%1000) / 1000}
	}
}

// large is a store without limits that are in the way.
func large(c *gpustoreextension.Config) { c.MaxBytes = 16 << 30 }

// BenchmarkAppend appends one scrape of a fleet.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{8, 64, 512} {
		b.Run(fmt.Sprintf("gpus=%d", n), func(b *testing.B) {
			s := startStore(b, large)
			series := gpus(n)
			// From as far back as the retention allows until now, and then repeated: what
			// is in the future is refused.
			begin := time.Now().Add(-23 * time.Hour)
			at, stored := begin, 0
			b.ReportAllocs()
			for b.Loop() {
				if at = at.Add(interval); at.After(time.Now()) {
					b.StopTimer()
					s, at = startStore(b, large), begin
					b.StartTimer()
				}
				fill(series, at)
				a, err := s.Append(context.Background(), series)
				require.NoError(b, err)
				require.Equal(b, len(series), a.Stored)
				stored += a.Stored
			}
			b.ReportMetric(float64(stored)/b.Elapsed().Seconds(), "samples/s")
		})
	}
}

// BenchmarkQuery asks what the page asks: the mean of a metric by service, now
// and over a window, and reports the memory of a process that holds that much.
func BenchmarkQuery(b *testing.B) {
	for _, world := range []struct {
		gpus   int
		window time.Duration
	}{{64, 6 * time.Hour}, {512, time.Hour}} {
		s := startStore(b, large)
		series := gpus(world.gpus)
		now := time.Now().Truncate(interval)
		for at := now.Add(-world.window); !at.After(now); at = at.Add(interval) {
			fill(series, at)
			_, err := s.Append(context.Background(), series)
			require.NoError(b, err)
		}
		series = nil
		runtime.GC()
		debug.FreeOSMemory()
		memory := float64(resident(os.Getpid())) / (1 << 20)
		name := fmt.Sprintf("gpus=%d/hours=%d", world.gpus, world.window/time.Hour)
		const mean = `avg by (k8s_cluster_name, k8s_namespace_name, service_name) (hw_gpu_metric_00_ratio)`
		b.Run(name+"/instant", func(b *testing.B) {
			for b.Loop() {
				_, err := s.Instant(context.Background(), mean, now)
				require.NoError(b, err)
			}
			b.ReportMetric(memory, "MiB-resident")
		})
		b.Run(name+"/range", func(b *testing.B) {
			for b.Loop() {
				_, err := s.Range(context.Background(), mean, store.Range{Start: now.Add(-time.Hour), End: now, Step: interval})
				require.NoError(b, err)
			}
		})
		b.Run(name+"/range of one service", func(b *testing.B) {
			for b.Loop() {
				_, err := s.Range(context.Background(), `avg(hw_gpu_metric_00_ratio{service_name="model-0001"})`, store.Range{Start: now.Add(-time.Hour), End: now, Step: interval})
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkBesidePrometheus asks the embedded store's API and a Prometheus server
// with the same data the same over HTTP, and reports the server's memory.
func BenchmarkBesidePrometheus(b *testing.B) {
	p := startPrometheus(b)
	s, ours := serving(b)
	series := gpus(64)
	now := time.Now().Truncate(interval)
	for at := now.Add(-time.Hour); !at.After(now); at = at.Add(interval) {
		fill(series, at)
		_, err := s.Append(context.Background(), series)
		require.NoError(b, err)
		p.write(b, series...)
	}
	query := url.Values{
		"query": {`avg by (k8s_cluster_name, k8s_namespace_name, service_name) (hw_gpu_metric_00_ratio)`},
		"start": {fmt.Sprint(now.Add(-time.Hour).Unix())}, "end": {fmt.Sprint(now.Unix())}, "step": {"15"},
	}.Encode()
	for _, server := range []struct{ name, url string }{{"embedded", ours}, {"prometheus", p.url}} {
		b.Run(server.name, func(b *testing.B) {
			for b.Loop() {
				status, _, err := ask(context.Background(), "GET", server.url+"/api/v1/query_range?"+query, nil, nil)
				require.NoError(b, err)
				require.Equal(b, 200, status)
			}
			if server.url == p.url {
				b.ReportMetric(float64(resident(p.pid))/(1<<20), "MiB-resident")
			}
		})
	}
}
