// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/dcgm"
)

// TestBadPages gives one receiver many bad exporters and a good one. A bad one is
// counted by its cause at every scrape, reported once with a remedy, and is down unless
// it is bad by some lines alone; the good one goes on.
func TestBadPages(t *testing.T) {
	t.Parallel()
	text := func(page string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(page)) }
	}
	cases := map[string]struct {
		handler http.HandlerFunc
		outcome fetch.Outcome
		up      float64
		logged  []string
	}{
		"HTML": {
			text("<!DOCTYPE html>\n<html><body>hello</body></html>\n"), fetch.Parse, 0,
			[]string{"<!DOCTYPE html>", "use the exporter's /metrics"},
		},
		"a BINARY field": {
			text(goodPage + `DCGM_FI_DEV_VALID_POWER_PROFILE_MASK{gpu="0",UUID="GPU-0"} ERROR - FAILED TO CONVERT TO STRING` + "\n"), fetch.OK, 1,
			[]string{"they are left out", "in the exporter's counters file take the field of that line out (BINARY)", "DCGM_FI_DEV_VALID_POWER_PROFILE_MASK"},
		},
		"a STRING field": {
			text(goodPage + `DCGM_FI_DEV_NAME{gpu="0",UUID="GPU-0"} NVIDIA H100` + "\n"), fetch.OK, 1,
			[]string{"they are left out", "type it label (STRING)", "DCGM_FI_DEV_NAME"},
		},
		"an unescaped label": {
			text(goodPage + `DCGM_FI_DEV_GPU_TEMP{UUID="GPU-0",pod_label_a="say "hi""} 1` + "\n"), fetch.OK, 1,
			[]string{"they are left out", "look at that line", "say"},
		},
		"nothing": {
			text("# HELP DCGM_FI_DEV_GPU_UTIL x\n"), fetch.Empty, 0,
			[]string{"the exporter prints nothing", "the page has no samples"},
		},
		"another program": {
			text("nvidia_smi_index{uuid=\"a\"} 0\n"), dcgm.Exporter.Other(), 1,
			[]string{"page of another program", "samples: 1, of DCGM: 0, first: nvidia_smi_index"},
		},
		"sentinels alone": {
			text("DCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-0\"} 9223372036854775794\nDCGM_FI_DEV_GPU_TEMP{UUID=\"GPU-1\"} 9223372036854775794\n"), fetch.NoValue, 1,
			[]string{"host engine", "dmesg", "GPUs: 2, rows: 2, values: 0"},
		},
		"no GPU": {
			text("DCGM_FI_DEV_NVSWITCH_TEMPERATURE_CURRENT{nvswitch=\"0\"} 40\n"), fetch.NoDevice, 1,
			[]string{"no row names a GPU", "samples of DCGM: 1, of a GPU: 0"},
		},
		"https on http": {
			nil, fetch.TLS, 0,
			[]string{"speaks no TLS: use http://"},
		},
		"redirected": {
			func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://elsewhere.example/x", http.StatusFound)
			}, fetch.Redirect, 0,
			[]string{"redirected to http://elsewhere.example", "write the address"},
		},
		"404": {
			http.NotFound, fetch.Status, 0,
			[]string{"HTTP status 404", "check the path, usually /metrics"},
		},
		"500": {
			func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "boom", http.StatusInternalServerError) }, fetch.Status, 0,
			[]string{"HTTP status 500", "when one entity fails"},
		},
		"slow": {
			func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, fetch.Timeout, 0,
			[]string{"scrape::scrape_timeout"},
		},
		"cut off in the middle of a line": {
			func(w http.ResponseWriter, _ *http.Request) {
				conn, buf, err := w.(http.Hijacker).Hijack()
				if err != nil {
					return
				}
				defer func() { _ = conn.Close() }()
				_, _ = buf.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + goodPage + "DCGM_FI_DEV_GPU_TE")
				_ = buf.Flush()
			}, fetch.CutOff, 0,
			[]string{"closed the connection"},
		},
		"down": {
			nil, fetch.Connect, 0,
			[]string{"connection refused", "check that dcgm-exporter runs"},
		},
	}
	servers := map[string]*httptest.Server{}
	endpoints := []string{}
	for name, tt := range cases {
		servers[name] = serveFunc(t, tt.handler)
		if name == "https on http" {
			servers[name].URL = strings.Replace(servers[name].URL, "http:", "https:", 1)
		}
		endpoints = append(endpoints, servers[name].URL+"/metrics?token=hunter2")
	}
	servers["down"].Close()
	good := serve(t, goodPage)
	r := start(t, append(endpoints, good.URL+"/metrics"))
	for name, server := range servers {
		r.awaitTarget(server, 3, name)
	}
	r.awaitTarget(good, 3, "good")

	for _, tt := range cases {
		r.await(tt.outcome, 3)
	}
	// On a busy machine a scrape of any of them can take longer than its second.
	warnings := slices.DeleteFunc(r.warnings(), func(line string) bool {
		return strings.Contains(line, "outcome=timeout") && !strings.Contains(line, servers["slow"].URL)
	})
	counts := r.count("scrapes")
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			up, ok := r.last(servers[name], "gpu.exporter.up")
			assert.True(t, ok)
			assert.Equal(t, tt.up, up)
			assert.GreaterOrEqual(t, counts["outcome="+string(tt.outcome)], int64(3))
			of := "exporter=" + servers[name].URL + "/metrics"
			assert.Equal(t, 1, contains(warnings, of), "logged once")
			logged := append(tt.logged, of)
			if tt.outcome != fetch.OK {
				logged = append(logged, "outcome="+string(tt.outcome))
			}
			assert.Equal(t, 1, contains(warnings, logged...), warnings)
			util, there := r.last(servers[name], "hw.gpu.utilization")
			assert.Equal(t, tt.outcome == fetch.OK, there, "the page's other lines")
			if there {
				assert.Equal(t, 0.5, util)
			}
		})
	}
	assert.Len(t, warnings, len(cases))
	refused := r.count("rows_refused")
	for _, reason := range []string{"no_sensor", "unparsable"} {
		assert.GreaterOrEqual(t, refused["reason="+reason], int64(9), reason)
	}
	for metric, want := range map[string]float64{"gpu.exporter.up": 1, "hw.gpu.utilization": 0.5} {
		got, _ := r.last(good, metric)
		assert.Equal(t, want, got, metric)
	}
	for _, e := range r.logs.All() {
		assert.NotContains(t, logLine(e), "hunter2")
	}
}

// TestHugePage: a page of 200 MB is refused by its size, not kept, and not read to
// its end.
func TestHugePage(t *testing.T) {
	var ended atomic.Bool
	huge := serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 200 {
			if _, err := w.Write(megabyte); err != nil {
				return
			}
		}
		ended.Store(true)
	})
	good := serve(t, goodPage)
	r := start(t, []string{huge.URL + "/metrics", good.URL + "/metrics"}, func(c *Config) { c.CollectionInterval = 5 * time.Second })
	r.await(fetch.TooLarge, 3)
	r.await(fetch.OK, 3)
	up, _ := r.last(huge, "gpu.exporter.up")
	assert.Zero(t, up)
	assert.False(t, ended.Load())
	assert.Equal(t, 1, contains(r.warnings(), "body size limit exceeded", "scrape::body_size_limit", huge.URL), r.warnings())
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	assert.Less(t, mem.HeapInuse, uint64(190<<20), "memory does not follow the 200 MB")
}

// megabyte is a page of comments.
var megabyte = []byte(strings.Repeat("# "+strings.Repeat("x", 1021)+"\n", 1024))

// TestLongLabels: a label of a megabyte costs its sample alone, is counted with the
// exporter's name and logged once.
func TestLongLabels(t *testing.T) {
	t.Parallel()
	server := serve(t, goodPage+"DCGM_FI_DEV_NEW{UUID=\"GPU-0\",x=\""+strings.Repeat("x", 1<<20)+"\"} 1\n")
	r := start(t, []string{server.URL + "/metrics?token=hunter2"})
	r.await(fetch.OK, 3)
	assert.Equal(t, 1, contains(r.warnings(), "samples over a limit", "label x of DCGM_FI_DEV_NEW has 1048576 bytes", "max_label_bytes is 4096", "metric_relabel_configs"), r.warnings())
	assert.GreaterOrEqual(t, r.count("rows_refused")["reason=limit"], int64(3))
	_, there := r.last(server, "dcgm.dev_new")
	assert.False(t, there)
	refused, err := r.telemetry.GetMetric("otelcol_dcgm_receiver_rows_refused")
	require.NoError(t, err)
	for _, p := range refused.Data.(metricdata.Sum[int64]).DataPoints {
		exporter, _ := p.Attributes.Value("exporter")
		receiver, _ := p.Attributes.Value("receiver")
		assert.Equal(t, server.URL+"/metrics", exporter.AsString())
		assert.Equal(t, r.id, receiver.AsString())
	}
}

// TestManyDevices: of a page of many nodes, as a federation has it, the first
// devices are read. The log names the limit once, with a remedy, and another
// target keeps its data.
func TestManyDevices(t *testing.T) {
	t.Parallel()
	var federated strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&federated, "DCGM_FI_DEV_GPU_UTIL{gpu=\"%d\",UUID=\"GPU-%05d\",Hostname=\"node-%d\"} 50\n", i%8, i, i/8)
	}
	many, good := serve(t, federated.String()), serve(t, goodPage)
	r := start(t, []string{many.URL + "/metrics", good.URL + "/metrics"})
	r.awaitTarget(many, 3, "many")
	r.awaitTarget(good, 3, "good")
	assert.Equal(t, 1, contains(r.warnings(), "over a limit of the receiver", "more than 1024 GPUs and MIG instances", "of each node by itself", many.URL), r.warnings())
	assert.GreaterOrEqual(t, r.count("rows_refused")["reason=limit"], int64(3*8976))
	util, _ := r.last(good, "hw.gpu.utilization")
	assert.Equal(t, 0.5, util)
}

// TestWrongType: a counters file that types a gauge as histogram or summary costs
// nothing; what really is a part of one is counted.
func TestWrongType(t *testing.T) {
	t.Parallel()
	server := serve(t, goodPage+`# TYPE DCGM_FI_DEV_GPU_TEMP histogram
DCGM_FI_DEV_GPU_TEMP{UUID="GPU-0"} 40
# TYPE DCGM_FI_DEV_POWER_USAGE summary
DCGM_FI_DEV_POWER_USAGE{UUID="GPU-0"} 400
DCGM_FI_DEV_POWER_USAGE_sum{UUID="GPU-0"} 400
`)
	r := start(t, []string{server.URL})
	r.await(fetch.OK, 3)
	assert.Empty(t, r.warnings())
	assert.GreaterOrEqual(t, r.count("rows_refused")["reason=wrong_type"], int64(3))
	for metric, want := range map[string]float64{"hw.power": 400, "hw.temperature": 40} {
		got, _ := r.last(server, metric)
		assert.Equal(t, want, got, metric)
	}
}

// TestRepeated: a series that the page has twice is counted at every scrape and
// reported once, and the query of the endpoint's URL is never logged.
func TestRepeated(t *testing.T) {
	t.Parallel()
	server := serve(t, goodPage+`DCGM_FI_DEV_POWER_USAGE{UUID="GPU-0"} 400
DCGM_FI_DEV_POWER_USAGE{UUID="GPU-0"} 500
`)
	r := start(t, []string{server.URL + "/metrics?token=hunter2"})
	r.await(fetch.OK, 3)
	assert.Equal(t, 1, contains(r.warnings(), "repeats series", "/metrics"), r.warnings())
	assert.Len(t, r.warnings(), 1)
	assert.GreaterOrEqual(t, r.count("rows_refused")["reason=repeated"], int64(3))
	power, _ := r.last(server, "hw.power")
	assert.Equal(t, 400.0, power)
	for _, e := range r.logs.All() {
		assert.NotContains(t, e.Message+fmt.Sprint(e.ContextMap()), "hunter2")
	}
}

// TestTwoUnits: a field with a unit about which the page contradicts itself is counted at
// every scrape, and its name is reported once.
func TestTwoUnits(t *testing.T) {
	t.Parallel()
	server := serve(t, "DCGM_FI_DEV_GPU_UTIL_RATIO{UUID=\"GPU-0\"} 37\nDCGM_FI_DEV_FB_USED_BYTES{UUID=\"GPU-0\"} 1048576\n")
	r := start(t, []string{server.URL})
	r.await(fetch.OK, 3)
	assert.Equal(t, 1, contains(r.warnings(), "contradicts itself", "DCGM_FI_DEV_GPU_UTIL_RATIO: values above 1", "print DCGM_FI_DEV_GPU_UTIL,"), r.warnings())
	assert.Len(t, r.warnings(), 1)
	assert.GreaterOrEqual(t, r.count("rows_refused")["reason=ambiguous"], int64(3))
	_, measured := r.last(server, "hw.gpu.utilization")
	assert.False(t, measured)
	usage, _ := r.last(server, "hw.gpu.memory.usage")
	assert.Equal(t, 1048576.0, usage)
}

// TestBack: the return of an exporter is logged, too.
func TestBack(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	down.Store(true)
	server := serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(goodPage))
	})
	r := start(t, []string{server.URL})
	r.await(fetch.Status, 1)
	down.Store(false)
	r.await(fetch.OK, 2)
	assert.Equal(t, 1, r.logs.FilterMessage("exporter is back").Len())
	assert.Equal(t, map[string]int64{"": 1}, r.count("devices"))
	down.Store(true)
	r.await(fetch.Status, 3)
	assert.Len(t, r.warnings(), 1, "it is known to flap")
	assert.Equal(t, map[string]int64{"": 0}, r.count("devices"))
}
