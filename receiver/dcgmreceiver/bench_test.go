// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package dcgmreceiver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/fields"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/metadata"
)

const (
	benchTargets = 50
	benchSamples = 8 * 60             // a page
	benchSettle  = 3 * time.Second    // after the start, not measured
	benchMeasure = 10 * time.Second   // of each receiver, in each round
	benchRounds  = 3                  // interleaved
	benchServer  = "DCGM_BENCH_SERVE" // makes the test binary a server
)

// BenchmarkReceiver compares the CPU time of this process for a sample, dcgm
// against prometheusreceiver, which maps nothing, on the same pages from a
// process of their own. Run it with -benchtime 1x.
func BenchmarkReceiver(b *testing.B) {
	url, pages := serveInChild(b)
	cfg := createDefaultConfig().(*Config)
	cfg.CollectionInterval = time.Second
	for i := range benchTargets {
		cfg.Endpoints = append(cfg.Endpoints, fmt.Sprintf("%s/%d/metrics", url, i))
	}
	var dcgm, prometheus []cost
	for range benchRounds {
		dcgm = append(dcgm, measure(b, newDCGM(b, cfg), pages))
		prometheus = append(prometheus, measure(b, newPrometheus(b, cfg), pages))
	}
	b.ReportMetric(0, "ns/op") // means nothing here
	b.ReportMetric(median(dcgm, cost.cpu), "dcgm-cpu-us/sample")
	b.ReportMetric(median(prometheus, cost.cpu), "prometheus-cpu-us/sample")
	b.ReportMetric(median(dcgm, cost.cpu)/median(prometheus, cost.cpu), "ratio")
	b.ReportMetric(median(dcgm, cost.allocs), "dcgm-allocs/sample")
	b.ReportMetric(median(prometheus, cost.allocs), "prometheus-allocs/sample")
}

// cost of scraping samples for a while.
type cost struct {
	samples, mallocs float64
	time             time.Duration
}

func (c cost) cpu() float64    { return float64(c.time.Microseconds()) / c.samples }
func (c cost) allocs() float64 { return c.mallocs / c.samples }

func median(costs []cost, of func(cost) float64) float64 {
	var list []float64
	for _, c := range costs {
		list = append(list, of(c))
	}
	slices.Sort(list)
	return list[len(list)/2]
}

func newDCGM(b *testing.B, cfg *Config) receiver.Metrics {
	r, err := NewFactory().CreateMetrics(b.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(b, err)
	return r
}

func newPrometheus(b *testing.B, cfg *Config) receiver.Metrics {
	prom, err := cfg.promConfig()
	require.NoError(b, err)
	factory := prometheusreceiver.NewFactory()
	inner := factory.CreateDefaultConfig().(*prometheusreceiver.Config)
	inner.PrometheusConfig = (*prometheusreceiver.PromConfig)(prom)
	inner.DiscoveryReloadOnStartup = true
	r, err := factory.CreateMetrics(b.Context(), receivertest.NewNopSettings(factory.Type()), inner, consumertest.NewNop())
	require.NoError(b, err)
	return r
}

func measure(b *testing.B, r receiver.Metrics, pages func() int) cost {
	require.NoError(b, r.Start(b.Context(), componenttest.NewNopHost()))
	time.Sleep(benchSettle)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, served := cpuTime(b), pages()
	time.Sleep(benchMeasure)
	c := cost{time: cpuTime(b) - cpu, samples: float64((pages() - served) * benchSamples)}
	runtime.ReadMemStats(&after)
	c.mallocs = float64(after.Mallocs - before.Mallocs)
	require.NoError(b, r.Shutdown(context.Background()))
	require.Positive(b, c.samples)
	return c
}

func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// serveInChild starts this binary once more as a server, whose CPU time is not
// this process's. pages is the number of pages that it has served.
func serveInChild(b *testing.B) (url string, pages func() int) {
	child := exec.Command(os.Args[0], "-test.run", "^TestServeBenchmark$")
	child.Env = append(os.Environ(), benchServer+"=1")
	stdin, err := child.StdinPipe()
	require.NoError(b, err)
	stdout, err := child.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, child.Start())
	b.Cleanup(func() {
		_ = stdin.Close()
		_ = child.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(b, err)
	url = strings.TrimSpace(line)
	return url, func() int {
		resp, err := http.Get(url + "/served")
		require.NoError(b, err)
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		require.NoError(b, err)
		n, err := strconv.Atoi(string(text))
		require.NoError(b, err)
		return n
	}
}

// TestServeBenchmark is the child of BenchmarkReceiver.
func TestServeBenchmark(t *testing.T) {
	if os.Getenv(benchServer) == "" {
		t.Skip("for BenchmarkReceiver alone")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var served atomic.Int64
	page := []byte(benchPage())
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/served" {
			_, _ = fmt.Fprint(w, served.Load())
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(page)
		served.Add(1)
	})}
	go func() { _ = server.Serve(listener) }()
	fmt.Println("http://" + listener.Addr().String())
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent ends
	require.NoError(t, server.Close())
}

// benchPage is a page of 8 GPUs of 60 known fields each, held by pods.
func benchPage() string {
	var page strings.Builder
	families := 0
	for _, f := range fields.All {
		if f.Label != "" || families == benchSamples/8 {
			continue
		}
		families++
		fmt.Fprintf(&page, "# HELP %s Help text of a length that is common for an exporter.\n# TYPE %s gauge\n", f.Name, f.Name)
		for gpu := range 8 {
			fmt.Fprintf(&page, `%s{gpu="%d",UUID="GPU-00000000-0000-4000-8000-00000000000%d",pci_bus_id="00000000:%d7:00.0",device="nvidia%d",modelName="NVIDIA H100 80GB HBM3",Hostname="node-a",DCGM_FI_DRIVER_VERSION="580.65.06",container="server",namespace="chat",pod="llm-%d"} %d`+"\n",
				f.Name, gpu, gpu, gpu, gpu, gpu, 40+gpu)
		}
	}
	return page.String()
}
