// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/judge"
)

func ofHealth(group string) bool { return group == "otelcol-gpu.health" }

// An alert about the health of a board fires no sooner than it should, names the reason
// and what to do, and ends with the state.
func TestHealthAlertsFireAndClear(t *testing.T) {
	t.Parallel()
	for alert, c := range map[string]struct {
		state string
		wait  int // half minutes
	}{
		"GPUHealthFailed":    {"failed", 2},
		"GPUHealthPredicted": {"predicted_failure", 20},
		"GPUHealthDegraded":  {"degraded", 30},
		"GPUHealthUnknown":   {"", 30},
	} {
		t.Run(alert, func(t *testing.T) {
			t.Parallel()
			const end = begin + 60
			series := maps.Clone(health("ok", c.state))
			if c.state == "" {
				series = silent()
			}
			for name, values := range series {
				// As from begin on until end, and as before after it.
				before, after, _ := strings.Cut(strings.ReplaceAll(values, "stale", "_x119"), " ")
				after, _, _ = strings.Cut(after, "x")
				before, _, _ = strings.Cut(before, "x")
				series[name] = before + "x360 " + after + "x59 " + before + "x60"
			}
			series[`hw_gpu_memory_usage_bytes{`+dev+`}`] = "4e10x480"
			series[`gpu_exporter_up{`+exp+`}`] = "1x480"
			j := newJudge(t, promqltest.LoadedStorage(t, load(series)), judge.NewEngine(), ofHealth)
			first, last, summary := 0, 0, ""
			for i := begin - 10; i < begin+110; i++ {
				if j.At(t, sampled(i))[alert] {
					if first == 0 {
						first = i
					}
					last, summary = i, summaryOf(j, alert)
				}
			}
			// The first sample of the new state is the one after begin; one that ended is
			// looked for until five minutes later.
			stale := map[bool]int{true: 10}[c.state == ""]
			assert.InDelta(t, begin+1+stale+c.wait, first, 1, "fires")
			assert.InDelta(t, end, last, 1, "clears")
			assert.Contains(t, summary, "GPU 0 of n1 (GPU-1)")
			if c.state != "" {
				assert.Contains(t, summary, ": xid_reset (reset_gpu).")
			}
		})
	}
}

func summaryOf(j *judge.Judge, alert string) string {
	for _, g := range j.Groups {
		for _, r := range g.AlertingRules() {
			for _, a := range r.ActiveAlerts() {
				if r.Name() == alert && a.State == rules.StateFiring {
					return a.Annotations.Get("summary")
				}
			}
		}
	}
	return ""
}

// Failures are changes to failed, also over time in which the board was not known; a
// board that was never known otherwise has not failed. XIDs an hour are absent where
// repeats cannot be seen.
func TestFailuresAndXIDsAreCounted(t *testing.T) {
	t.Parallel()
	series := map[string]string{
		`hw_status{hw_state="failed",hw_type="gpu",k8s_cluster_name="c1",hw_id="GPU-1"}`: "0x99 1x99 0x99 stale _x38 1x139",
		`hw_status{hw_state="ok",hw_type="gpu",k8s_cluster_name="c1",hw_id="GPU-1"}`:     "1x99 0x99 1x99 stale _x38 0x139",
		`hw_status{hw_state="failed",hw_type="gpu",k8s_cluster_name="c1",hw_id="GPU-2"}`: "1x480",
		`hw_status{hw_state="ok",hw_type="gpu",k8s_cluster_name="c1",hw_id="GPU-2"}`:     "0x480",
		`hw_status{hw_state="failed",hw_type="gpu",k8s_cluster_name="c2",hw_id="GPU-3"}`: "0x480",
		`hw_status{hw_state="ok",hw_type="gpu",k8s_cluster_name="c2",hw_id="GPU-3"}`:     "1x480",
	}
	for _, id := range []string{"1", "2", "3"} {
		series[`hw_gpu_memory_usage_bytes{k8s_cluster_name="c1",hw_id="GPU-`+id+`"}`] = "1x480"
	}
	series[`gpu_xid_errors_total{gpu_xid_code="13",k8s_cluster_name="c1",hw_id="GPU-1"}`] = "5x420 7x59"
	series[`gpu_xid_errors_total{gpu_xid_code="48",k8s_cluster_name="c1",hw_id="GPU-1"}`] = "_x420 2x59"
	series[`gpu_xid_errors_total{gpu_xid_code="31",k8s_cluster_name="c1",hw_id="GPU-2"}`] = "5x480"
	series[`gpu_xid_errors_total{gpu_xid_code="31",gpu_xid_derived="true",k8s_cluster_name="c1",hw_id="GPU-3"}`] = "1x420 2x59"
	db, engine := promqltest.LoadedStorage(t, load(series)), judge.NewEngine()
	j := newJudge(t, db, engine, func(group string) bool {
		return group == "otelcol-gpu.boards" || group == "otelcol-gpu.devices"
	})
	for i := 0; i <= 480; i += 2 {
		j.At(t, sampled(i))
	}
	w := &world{db: db, engine: engine}
	value := func(query string) map[string]float64 {
		all := map[string]float64{}
		for _, s := range w.ask(t, query, sampled(480)) {
			all[s.Metric.Get("k8s_cluster_name")+s.Metric.Get("hw_id")+s.Metric.Get("hw_state")] = s.F
		}
		return all
	}
	assert.Equal(t, map[string]float64{"c1ok": 0, "c1failed": 2, "c2ok": 1, "c2failed": 0}, value("cluster:gpu_boards:count"))
	failures := value("cluster:gpu_failures_per_1000_gpu_days:7d")
	require.Len(t, failures, 2)
	// Four hours of two boards, of which one was not known for the 15 minutes after the five
	// for which Prometheus looks back.
	assert.InDelta(t, 2*1000/(8./24), failures["c1"], 2*1000/(8./24)*0.1)
	assert.Zero(t, failures["c2"])
	rate := value("device:gpu_xid_errors:increase1h")
	assert.Zero(t, rate["c1GPU-2"])
	assert.InDelta(t, 4, rate["c1GPU-1"], 0.2, "two more of one code, two first ones of another")
	assert.NotContains(t, rate, "c1GPU-3", "derived from the last code")
}
