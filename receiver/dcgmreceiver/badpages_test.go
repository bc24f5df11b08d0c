// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"fmt"
	"net"
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
)

// TestBadPages gives one receiver many bad exporters and a good one. A bad one is
// counted by its cause at every scrape, told once with a remedy, and is down unless
// it is bad by some lines alone; the good one goes on.
func TestBadPages(t *testing.T) {
	t.Parallel()
	text := func(page string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(page)) }
	}
	cases := map[string]struct {
		handler http.HandlerFunc
		outcome outcome
		up      float64
		told    []string
	}{
		"HTML": {
			text("<!DOCTYPE html>\n<html><body>hello</body></html>\n"), outcomeParse, 0,
			[]string{"<!DOCTYPE html>", "use the exporter's /metrics"},
		},
		"a BINARY field": {
			text(goodPage + `DCGM_FI_DEV_VALID_POWER_PROFILE_MASK{gpu="0",UUID="GPU-0"} ERROR - FAILED TO CONVERT TO STRING` + "\n"), outcomeOK, 1,
			[]string{"they are left out", "in the exporter's counters file take the field in the line below out (BINARY)", "DCGM_FI_DEV_VALID_POWER_PROFILE_MASK"},
		},
		"a STRING field": {
			text(goodPage + `DCGM_FI_DEV_NAME{gpu="0",UUID="GPU-0"} NVIDIA H100` + "\n"), outcomeOK, 1,
			[]string{"they are left out", "type it label (STRING)", "DCGM_FI_DEV_NAME"},
		},
		"an unescaped label": {
			text(goodPage + `DCGM_FI_DEV_GPU_TEMP{UUID="GPU-0",pod_label_a="say "hi""} 1` + "\n"), outcomeOK, 1,
			[]string{"they are left out", "look at the line below", "say"},
		},
		"nothing": {
			text(""), outcomeEmpty, 1,
			[]string{"the page names no GPU"},
		},
		"no GPU": {
			text("# HELP DCGM_FI_DEV_GPU_UTIL x\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\ngo_goroutines 12\n"), outcomeEmpty, 1,
			[]string{"the page names no GPU"},
		},
		"500": {
			func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "boom", http.StatusInternalServerError) }, outcomeStatus, 0,
			[]string{"HTTP status 500", "scrape::basic_auth"},
		},
		"slow": {
			func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, outcomeTimeout, 0,
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
			}, outcomeCutOff, 0,
			[]string{"closed the connection"},
		},
		"down": {
			nil, outcomeConnect, 0,
			[]string{"connection refused", "check that the exporter runs"},
		},
	}
	servers := map[string]*httptest.Server{}
	endpoints := []string{}
	for name, tt := range cases {
		servers[name] = serveFunc(t, tt.handler)
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
			assert.Equal(t, 1, contains(warnings, of), "told once")
			told := append(tt.told, of)
			if tt.outcome != outcomeOK {
				told = append(told, "outcome="+string(tt.outcome))
			}
			assert.Equal(t, 1, contains(warnings, told...), warnings)
			util, there := r.last(servers[name], "hw.gpu.utilization")
			assert.Equal(t, tt.outcome == outcomeOK, there, "the page's other lines")
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
	r.await(outcomeTooLarge, 3)
	r.await(outcomeOK, 3)
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
	r.await(outcomeOK, 3)
	assert.Empty(t, r.warnings())
	assert.GreaterOrEqual(t, r.count("rows_refused")["reason=wrong_type"], int64(3))
	for metric, want := range map[string]float64{"hw.power": 400, "hw.temperature": 40} {
		got, _ := r.last(server, metric)
		assert.Equal(t, want, got, metric)
	}
}

// TestRepeated: a series that the page has twice is counted at every scrape and
// told once, and what the query of the endpoint says is not told at all.
func TestRepeated(t *testing.T) {
	t.Parallel()
	server := serve(t, goodPage+`DCGM_FI_DEV_POWER_USAGE{UUID="GPU-0"} 400
DCGM_FI_DEV_POWER_USAGE{UUID="GPU-0"} 500
`)
	r := start(t, []string{server.URL + "/metrics?token=hunter2"})
	r.await(outcomeOK, 3)
	assert.Equal(t, 1, contains(r.warnings(), "repeats series", "/metrics"), r.warnings())
	assert.Len(t, r.warnings(), 1)
	assert.GreaterOrEqual(t, r.count("rows_refused")["reason=repeated"], int64(3))
	power, _ := r.last(server, "hw.power")
	assert.Equal(t, 400.0, power)
	for _, e := range r.logs.All() {
		assert.NotContains(t, e.Message+fmt.Sprint(e.ContextMap()), "hunter2")
	}
}

// TestBack: an exporter that returns is told, too.
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
	r.await(outcomeStatus, 1)
	down.Store(false)
	r.await(outcomeOK, 2)
	assert.Equal(t, 1, r.logs.FilterMessage("exporter is back").Len())
	assert.Equal(t, map[string]int64{"": 1}, r.count("devices"))
	down.Store(true)
	r.await(outcomeStatus, 3)
	assert.Len(t, r.warnings(), 1, "it is known to flap")
	assert.Equal(t, map[string]int64{"": 0}, r.count("devices"))
}

// TestStory checks what the log is told over time.
func TestStory(t *testing.T) {
	type step struct {
		after time.Duration
		o     outcome
		told  bool
	}
	for name, steps := range map[string][]step{
		"well from the start": {{0, outcomeOK, false}, {time.Hour, outcomeOK, false}},
		"down for long":       {{0, outcomeConnect, true}, {time.Hour, outcomeConnect, false}, {0, outcomeOK, true}},
		"another cause":       {{0, outcomeConnect, true}, {time.Second, outcomeTimeout, true}, {time.Second, outcomeConnect, false}},
		"flapping": {
			{0, outcomeConnect, true}, {time.Second, outcomeOK, true}, {time.Second, outcomeConnect, false},
			{time.Second, outcomeOK, false}, {time.Second, outcomeConnect, false},
		},
		"flapped, then down for good": {
			{0, outcomeConnect, true}, {time.Second, outcomeOK, true}, {time.Second, outcomeConnect, false},
			{retell, outcomeConnect, true}, {retell, outcomeConnect, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s story
			now := time.Now()
			for i, step := range steps {
				now = now.Add(step.after)
				assert.Equal(t, step.told, s.news(step.o, now), "step %d", i)
			}
		})
	}
}

func TestHostPort(t *testing.T) {
	for name, want := range map[string]struct {
		host string
		port int64
	}{
		"http://node-a:9400/metrics": {"node-a", 9400},
		"http://node-a/metrics":      {"node-a", 80},
		"https://[fd00::1]/metrics":  {"fd00::1", 443},
		"https://[fd00::1]:9400":     {"fd00::1", 9400},
	} {
		u, err := http.NewRequest(http.MethodGet, name, nil)
		require.NoError(t, err)
		host, port := hostPort(u.URL)
		assert.Equal(t, want.host, host, name)
		assert.Equal(t, want.port, port, name)
	}
	_, err := net.LookupPort("tcp", "http")
	require.NoError(t, err)
}
