// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporters

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/webhook"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/pagetest"
)

// bench is a fleet behind real sockets, with a clock of its own.
type bench struct {
	t       *testing.T
	fleet   *gpusim.Fleet
	server  *Server
	clock   *pagetest.Clock
	control string
	client  *http.Client
}

func newFleet(t *testing.T, cfg gpusim.Config) (*gpusim.Fleet, *pagetest.Clock) {
	t.Helper()
	clock := pagetest.NewClock()
	fl, err := gpusim.New(cfg, clock.Now)
	require.NoError(t, err)
	return fl, clock
}

func newBench(t *testing.T, cfg gpusim.Config) *bench {
	fl, clock := newFleet(t, cfg)
	s, err := Serve(fl, "127.0.0.1", 0)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	sink := webhook.NewSink(clock.Now)
	ctl := httptest.NewServer(Control(fl, s, sink))
	t.Cleanup(ctl.Close)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return &bench{t: t, fleet: fl, server: s, clock: clock, control: ctl.URL, client: client}
}

// get reads a page as a scraper would.
func (b *bench) get(ctx context.Context, node string) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.server.URL(node), nil)
	require.NoError(b.t, err)
	resp, err := b.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

// mustGet reads the page of a healthy exporter.
func (b *bench) mustGet(node string) []byte {
	b.t.Helper()
	resp, body, err := b.get(b.t.Context(), node)
	require.NoError(b.t, err)
	require.Equal(b.t, http.StatusOK, resp.StatusCode)
	return body
}

// call talks to the control port and decodes the answer.
func (b *bench) call(method, path, body string, into any) int {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.control+path, strings.NewReader(body))
	require.NoError(b.t, err)
	resp, err := b.client.Do(req)
	require.NoError(b.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(b.t, err)
	if into != nil {
		require.NoError(b.t, json.Unmarshal(answer, into), string(answer))
	}
	return resp.StatusCode
}

// start starts a fault through the control port.
func (b *bench) start(body string) string {
	b.t.Helper()
	var st gpusim.FaultStatus
	require.Equal(b.t, http.StatusCreated, b.call(http.MethodPost, "/fault", body, &st))
	require.NotEmpty(b.t, st.ID)
	return st.ID
}

func (b *bench) end(id string) {
	b.t.Helper()
	require.Equal(b.t, http.StatusOK, b.call(http.MethodDelete, "/fault/"+id, "", nil))
}

func TestServesPagesAsTheExporterDoes(t *testing.T) {
	b := newBench(t, gpusim.Demo(gpusim.DemoTimes()))
	for _, node := range b.fleet.Nodes() {
		resp, body, err := b.get(t.Context(), node)
		require.NoError(t, err)
		want, err := b.fleet.Page(node, b.clock.Now())
		require.NoError(t, err)
		assert.Equal(t, string(want), string(body))
		assert.Equal(t, "text/plain; version=0.0.4; charset=utf-8", resp.Header.Get("Content-Type"))
		assert.Equal(t, b.clock.Now().Format(http.TimeFormat), resp.Header.Get("Date"))
	}
	assert.Eventually(t, func() bool { return b.server.Pages() == int64(len(b.fleet.Nodes())) }, time.Minute, time.Millisecond)
	resp, err := b.client.Get(strings.TrimSuffix(b.server.URL("gpu-node-a"), "metrics") + "health")
	require.NoError(t, err)
	_ = resp.Body.Close()
	assert.Equal(t, http.StatusOK, resp.StatusCode)
}

func TestExporterDownRefusesConnectionsAndReturns(t *testing.T) {
	b := newBench(t, gpusim.Demo(gpusim.DemoTimes()))
	before := b.server.URL("gpu-node-b")
	b.mustGet("gpu-node-b") // leaves an open connection behind
	id := b.start(`{"node":"gpu-node-b","kind":"exporter_down"}`)
	_, _, err := b.get(t.Context(), "gpu-node-b")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	b.mustGet("gpu-node-c")
	b.end(id)
	assert.Equal(t, before, b.server.URL("gpu-node-b"))
	b.mustGet("gpu-node-b")
}

func TestScriptedExporterDown(t *testing.T) {
	b := newBench(t, gpusim.Demo(gpusim.Times{Down: time.Minute, DownFor: 30 * time.Second}))
	b.mustGet("gpu-node-a")
	b.clock.Advance(time.Minute)
	b.server.Reconcile()
	_, _, err := b.get(t.Context(), "gpu-node-a")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	b.clock.Advance(30 * time.Second)
	b.server.Reconcile()
	b.mustGet("gpu-node-a")
}

func TestSlowExporter(t *testing.T) {
	b := newBench(t, gpusim.Demo(gpusim.DemoTimes()))
	id := b.start(`{"node":"gpu-node-a","kind":"exporter_slow","delay":"1h"}`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // in which it arrives
	defer cancel()
	_, _, err := b.get(ctx, "gpu-node-a")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	b.mustGet("gpu-node-b")
	b.end(id)
	id = b.start(`{"node":"gpu-node-a","kind":"exporter_slow","delay":"1ms"}`)
	b.mustGet("gpu-node-a")
	b.end(id)
	b.start(`{"node":"gpu-node-a","kind":"exporter_slow","delay":"1h","every":2}`)
	b.mustGet("gpu-node-a")
	ctx, cancel = context.WithTimeout(t.Context(), time.Second) // in which it arrives
	defer cancel()
	_, _, err = b.get(ctx, "gpu-node-a")
	require.ErrorIs(t, err, context.DeadlineExceeded, "every second one")
	b.mustGet("gpu-node-a")
}

func TestFrozenExporter(t *testing.T) {
	b := newBench(t, gpusim.Demo(gpusim.DemoTimes()))
	b.clock.Advance(5 * time.Second)
	id := b.start(`{"node":"gpu-node-a","kind":"exporter_frozen"}`)
	first := b.mustGet("gpu-node-a")
	b.clock.Advance(30 * time.Second)
	assert.Equal(t, first, b.mustGet("gpu-node-a"))
	b.end(id)
	assert.NotEqual(t, first, b.mustGet("gpu-node-a"))
}

func TestPageCutInTheMiddleOfALine(t *testing.T) {
	b := newBench(t, gpusim.Demo(gpusim.DemoTimes()))
	whole := b.mustGet("gpu-node-c")

	id := b.start(`{"node":"gpu-node-c","kind":"page_cut"}`)
	resp, body, err := b.get(t.Context(), "gpu-node-c")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "fewer bytes than Content-Length promised")
	assert.EqualValues(t, len(whole), resp.ContentLength)
	assert.Less(t, len(body), len(whole))
	b.end(id)

	id = b.start(`{"node":"gpu-node-c","kind":"page_cut","mode":"clean"}`)
	_, body, err = b.get(t.Context(), "gpu-node-c")
	require.NoError(t, err)
	assert.True(t, bytes.HasPrefix(whole, body))
	assert.NotEqual(t, byte('\n'), body[len(body)-1])
	assert.Regexp(t, `\{gpu="\d",$`, string(body[bytes.LastIndexByte(body, '\n'):]))
	b.end(id)
	assert.Equal(t, whole, b.mustGet("gpu-node-c"))
}

func TestClockSkew(t *testing.T) {
	b := newBench(t, gpusim.Demo(gpusim.DemoTimes()))
	b.start(`{"node":"gpu-node-b","kind":"clock_skew","skew":"-10m","timestamps":true}`)
	resp, body, err := b.get(t.Context(), "gpu-node-b")
	require.NoError(t, err)
	skewed := b.clock.Now().Add(-10 * time.Minute)
	assert.Equal(t, skewed.Format(http.TimeFormat), resp.Header.Get("Date"))
	for _, s := range pagetest.Parse(t, body).Samples {
		require.NotNil(t, s.Stamp)
		require.Equal(t, skewed.UnixMilli(), *s.Stamp)
	}
	b.start(`{"node":"gpu-node-a","kind":"clock_skew"}`)
	resp, body, err = b.get(t.Context(), "gpu-node-a")
	require.NoError(t, err)
	assert.Equal(t, b.clock.Now().Add(2*time.Minute).Format(http.TimeFormat), resp.Header.Get("Date"))
	assert.Nil(t, pagetest.Parse(t, body).Samples[0].Stamp)
}

// The faults that change values, over HTTP and through the control port.
func TestValueFaultsThroughTheControlPort(t *testing.T) {
	cfg := gpusim.Demo(gpusim.DemoTimes())
	cfg.Nodes[1].Version = "3.3" // which has an XID row before the first XID
	b := newBench(t, cfg)
	b.clock.Advance(12300 * time.Millisecond)
	see := func() pagetest.Page { return pagetest.Parse(t, b.mustGet("gpu-node-b")) }
	count := func(name string, kv ...string) int { return len(see().Find(name, kv...)) }
	for _, tc := range []struct {
		fault string
		seen  func() bool
	}{
		{`{"node":"gpu-node-b","kind":"xid","device":"0","code":79}`, func() bool {
			return see().One(t, "DCGM_FI_DEV_XID_ERRORS", "gpu", "0") == 79
		}},
		{`{"node":"gpu-node-b","kind":"gpu_lost","device":"3"}`, func() bool { return count("DCGM_FI_DEV_GPU_UTIL", "gpu", "3") == 0 }},
		{`{"node":"gpu-node-b","kind":"sentinel","device":"4","fields":["DCGM_FI_DEV_FB_USED"]}`, func() bool {
			return see().One(t, "DCGM_FI_DEV_FB_USED", "gpu", "4") > 1e18
		}},
		{`{"node":"gpu-node-b","kind":"thermal_throttle","device":"1"}`, func() bool {
			return see().One(t, "DCGM_FI_DEV_SM_CLOCK", "gpu", "1") < 1000
		}},
		{`{"node":"gpu-node-b","kind":"new_pod","pod":{"namespace":"x","name":"y","container":"c","devices":["7"],"load":"idle"}}`, func() bool {
			return count("DCGM_FI_DEV_GPU_UTIL", "pod", "y", "gpu", "7") == 1
		}},
		{`{"node":"gpu-node-b","kind":"pod_gone","pod":{"namespace":"inference","name":"llama-6b8d5c9f7d-m7wq4"}}`, func() bool {
			return count("DCGM_FI_DEV_GPU_UTIL", "pod", "llama-6b8d5c9f7d-m7wq4") == 0
		}},
	} {
		assert.False(t, tc.seen(), "before: %s", tc.fault)
		id := b.start(tc.fault)
		assert.True(t, tc.seen(), "during: %s", tc.fault)
		b.clock.Advance(time.Second)
		b.end(id)
		assert.False(t, tc.seen(), "after: %s", tc.fault)
	}
}

// What GET /truth reports about a device is what its exporter prints, and services
// are plain means and sums over it.
func TestTruthEqualsThePages(t *testing.T) {
	cfg := gpusim.Demo(gpusim.DemoTimes())
	for i := range cfg.Nodes {
		cfg.Nodes[i].Fields = "all"
	}
	b := newBench(t, cfg)
	for range 13 {
		b.clock.Advance(11 * time.Second)
		b.server.Reconcile()
		var truth gpusim.Truth
		b.call(http.MethodGet, "/truth", "", &truth)
		type pod struct {
			util    []float64
			mem     float64
			service string
		}
		pods := map[string]*pod{}
		for _, n := range truth.Nodes {
			if n.Exporter == "down" {
				_, _, err := b.get(t.Context(), n.Name)
				require.ErrorIs(t, err, syscall.ECONNREFUSED)
				continue
			}
			p := pagetest.Parse(t, b.mustGet(n.Name))
			for _, d := range n.Devices {
				kv := []string{"UUID", d.UUID}
				util := "DCGM_FI_DEV_GPU_UTIL"
				if d.MIG != "" {
					_, gi, _ := strings.Cut(d.ID, "/")
					kv = append(kv, "GPU_I_ID", gi)
					util = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
				}
				u := p.One(t, util, kv...)
				if d.MIG == "" {
					u /= 100
				}
				assert.True(t, d.OnPage)
				assert.Equal(t, d.Utilization, u)
				assert.Equal(t, d.TensorActive, p.One(t, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", kv...))
				assert.Equal(t, d.DRAMActive, p.One(t, "DCGM_FI_PROF_DRAM_ACTIVE", kv...))
				assert.Equal(t, float64(d.MemoryUsedMiB), p.One(t, "DCGM_FI_DEV_FB_USED", kv...))
				assert.Equal(t, float64(d.MemoryTotalMiB), p.One(t, "DCGM_FI_DEV_FB_TOTAL", kv...))
				assert.Equal(t, d.PowerWatts, p.One(t, "DCGM_FI_DEV_POWER_USAGE", kv...))
				assert.Equal(t, d.EnergyMilliJoule, p.One(t, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", kv...))
				assert.Equal(t, d.TemperatureC, p.One(t, "DCGM_FI_DEV_GPU_TEMP", kv...))
				assert.Equal(t, d.Pod, p.Find("DCGM_FI_DEV_FB_USED", kv...)[0].Labels["pod"])
				if d.Pod == "" {
					continue
				}
				if pods[d.Pod] == nil {
					pods[d.Pod] = &pod{service: d.Service}
				}
				pods[d.Pod].util = append(pods[d.Pod].util, u)
				pods[d.Pod].mem += float64(d.MemoryUsedMiB)
			}
		}
		for _, s := range truth.Services {
			sum, n := 0.0, 0
			for _, p := range pods {
				if p.service != s.Name {
					continue
				}
				mean := 0.0
				for _, u := range p.util {
					mean += u / float64(len(p.util))
				}
				sum += mean
				n++
			}
			require.NotNil(t, s.OnPageUtilization)
			assert.Equal(t, n, s.PodsOnPage, s.Name)
			assert.InDelta(t, sum/float64(n), *s.OnPageUtilization, 1e-9, s.Name)
			if n == len(s.Pods) {
				assert.InDelta(t, s.Utilization, *s.OnPageUtilization, 1e-9)
			}
		}
	}
}

func TestErrorOfATakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	fl, _ := newFleet(t, gpusim.Demo(gpusim.DemoTimes()))
	_, err = Serve(fl, "127.0.0.1", taken)
	require.ErrorContains(t, err, fmt.Sprintf("node gpu-node-a: cannot listen on 127.0.0.1:%d: the port is taken", taken))
}

// A port that another process took while the exporter was away is taken back once it
// is free.
func TestExporterReturnsWhenItsPortIsFree(t *testing.T) {
	b := newBench(t, gpusim.Demo(gpusim.DemoTimes()))
	addr := strings.TrimSuffix(strings.TrimPrefix(b.server.URL("gpu-node-a"), "http://"), "/metrics")
	id := b.start(`{"node":"gpu-node-a","kind":"exporter_down"}`)
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	b.end(id)
	_ = l.Close()
	b.server.Reconcile()
	b.mustGet("gpu-node-a")
}
