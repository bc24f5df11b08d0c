// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package dcgmreceiver

import (
	"bufio"
	"context"
	"encoding/json"
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
	"sync"
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

	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/dcgm"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/metadata"
)

const (
	benchSamples = 8 * 60           // a page
	benchSettle  = 4 * time.Second  // after the start, not measured
	benchMeasure = 10 * time.Second // of each receiver, in each round
	benchRounds  = 3                // in turns
	benchRole    = "DCGM_BENCH"     // makes the test binary a child of the benchmark
)

// BenchmarkReceiver compares CPU time, allocations and memory, dcgm against
// prometheusreceiver, which maps nothing, on the same pages. Exporters and
// receivers are processes of their own. Run it with -benchtime 1x.
func BenchmarkReceiver(b *testing.B) {
	exporters := startChild(b, "exporters")
	url := exporters.line()
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("targets=%d", n), func(b *testing.B) {
			costs := map[string][]cost{}
			for range benchRounds {
				for _, name := range []string{"dcgm", "prometheus"} {
					costs[name] = append(costs[name], measure(b, name, url, n))
				}
			}
			b.ReportMetric(0, "ns/op") // means nothing here
			for _, f := range []struct {
				unit string
				of   func(cost) float64
			}{
				{"cpu-us/sample", func(c cost) float64 { return c.CPU / c.Samples }},
				{"allocs/sample", func(c cost) float64 { return c.Allocs / c.Samples }},
				{"heap-B/series", func(c cost) float64 { return c.Heap / float64(n*benchSamples) }},
				{"RSS-MiB", func(c cost) float64 { return c.RSS / (1 << 20) }},
			} {
				dcgm, prometheus := median(costs["dcgm"], f.of), median(costs["prometheus"], f.of)
				b.ReportMetric(dcgm, "dcgm-"+f.unit)
				b.ReportMetric(prometheus, "prometheus-"+f.unit)
				b.ReportMetric(dcgm/prometheus, "ratio-"+strings.SplitN(f.unit, "/", 2)[0])
			}
		})
	}
}

// cost is what one receiver took in one round.
type cost struct {
	Samples, Allocs float64
	CPU             float64 // in us, of the whole process
	Heap            float64 // bytes alive, more than before the start
	RSS             float64 // bytes, of the whole process
}

func median(costs []cost, of func(cost) float64) float64 {
	var list []float64
	for _, c := range costs {
		list = append(list, of(c))
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// measure has a child run a receiver for a while.
func measure(b *testing.B, name, url string, targets int) (c cost) {
	child := startChild(b, name, url, strconv.Itoa(targets))
	require.NoError(b, json.Unmarshal([]byte(child.line()), &c))
	child.end()
	require.Positive(b, c.Samples)
	return c
}

// child is this binary once more, in another role.
type child struct {
	b      *testing.B
	cmd    *exec.Cmd
	stdin  io.Closer
	stdout *bufio.Reader
	once   sync.Once
}

func startChild(b *testing.B, role ...string) *child {
	c := &child{b: b, cmd: exec.Command(os.Args[0], "-test.run", "^TestBenchmarkChild$")}
	c.cmd.Env = append(os.Environ(), benchRole+"="+strings.Join(role, " "))
	var err error
	c.stdin, err = c.cmd.StdinPipe()
	require.NoError(b, err)
	stdout, err := c.cmd.StdoutPipe()
	require.NoError(b, err)
	c.stdout = bufio.NewReader(stdout)
	require.NoError(b, c.cmd.Start())
	b.Cleanup(c.end)
	return c
}

func (c *child) line() string {
	line, err := c.stdout.ReadString('\n')
	require.NoError(c.b, err)
	return strings.TrimSpace(line)
}

// end lets the child end, which it does with its standard input.
func (c *child) end() {
	c.once.Do(func() {
		_ = c.stdin.Close()
		_, _ = io.Copy(io.Discard, c.stdout)
		_ = c.cmd.Wait()
	})
}

// TestBenchmarkChild is a child of BenchmarkReceiver.
func TestBenchmarkChild(t *testing.T) {
	role := strings.Fields(os.Getenv(benchRole))
	switch {
	case len(role) == 0:
		t.Skip("for BenchmarkReceiver alone")
	case role[0] == "exporters":
		serveBenchmark(t)
	default:
		n, err := strconv.Atoi(role[2])
		require.NoError(t, err)
		runBenchmark(t, role[0], role[1], n)
	}
}

// serveBenchmark is all exporters. /served is how many pages they have given.
func serveBenchmark(t *testing.T) {
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

// runBenchmark runs a receiver and prints its cost.
func runBenchmark(t *testing.T, name, url string, targets int) {
	cfg := createDefaultConfig().(*Config)
	cfg.CollectionInterval = time.Second
	for i := range targets {
		cfg.Endpoints = append(cfg.Endpoints, fmt.Sprintf("%s/%d/metrics", url, i))
	}
	before := heap()
	r := newDCGM(t, cfg)
	if name == "prometheus" {
		r = newPrometheus(t, cfg)
	}
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	time.Sleep(benchSettle)
	var from, to runtime.MemStats
	runtime.ReadMemStats(&from)
	cpu, pages := cpuTime(t), served(t, url)
	time.Sleep(benchMeasure)
	c := cost{CPU: float64((cpuTime(t) - cpu).Microseconds()), Samples: float64((served(t, url) - pages) * benchSamples)}
	runtime.ReadMemStats(&to)
	c.Allocs, c.RSS = float64(to.Mallocs-from.Mallocs), resident(t)
	c.Heap = heap() - before
	require.NoError(t, r.Shutdown(context.Background()))
	text, err := json.Marshal(c)
	require.NoError(t, err)
	fmt.Println(string(text))
}

func newDCGM(t *testing.T, cfg *Config) receiver.Metrics {
	r, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	return r
}

func newPrometheus(t *testing.T, cfg *Config) receiver.Metrics {
	prom, err := cfg.Prometheus(&exporter)
	require.NoError(t, err)
	factory := prometheusreceiver.NewFactory()
	inner := factory.CreateDefaultConfig().(*prometheusreceiver.Config)
	inner.PrometheusConfig = (*prometheusreceiver.PromConfig)(prom)
	inner.DiscoveryReloadOnStartup = true
	r, err := factory.CreateMetrics(t.Context(), receivertest.NewNopSettings(factory.Type()), inner, consumertest.NewNop())
	require.NoError(t, err)
	return r
}

// heap is what is alive, in bytes.
func heap() float64 {
	runtime.GC()
	runtime.GC() // what pools hold goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func cpuTime(t *testing.T) time.Duration {
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// resident is the memory of this process, 0 where the system does not report it.
func resident(t *testing.T) float64 {
	status, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, err := strconv.Atoi(strings.Fields(string(status))[1])
	require.NoError(t, err)
	return float64(pages * os.Getpagesize())
}

func served(t *testing.T, url string) int {
	resp, err := http.Get(url + "/served")
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	n, err := strconv.Atoi(string(text))
	require.NoError(t, err)
	return n
}

// benchPage is a page of 8 GPUs of 60 known fields each, held by pods.
func benchPage() string {
	var page strings.Builder
	families := 0
	for _, f := range dcgm.Table.Fields {
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
