// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// check compares what stands still with the truth.
func (r *readBack) check(t *testing.T, what string, at time.Time, known map[string]map[string]bool) {
	t.Helper()
	want := r.truths[len(r.truths)-1]
	sets := map[string][]string{}
	for _, h := range r.outputs() {
		all := h.query(t, `{__name__=~".+"}`, at)
		if known[h.name] == nil {
			known[h.name] = map[string]bool{}
		}
		for s := range all {
			known[h.name][s] = true
			if !strings.Contains(s, `__name__="gpu_events`) {
				sets[h.name] = append(sets[h.name], s)
			}
		}
		slices.Sort(sets[h.name])
		// The same a little ago: nothing comes and goes.
		earlier := h.query(t, `{__name__=~".+"}`, at.Add(-2*time.Second))
		assert.Empty(t, apart(slices.Collect(maps.Keys(earlier)), slices.Collect(maps.Keys(all))), "%s: %s: what came or went", h.name, what)

		assert.Equal(t, want.devices, h.sum(t, "sum("+inBytes(h, "hw_gpu_memory_usage")+`{hw_parent=""})`, at), "%s: %s", h.name, what)
		utilization := "gpu_service_utilization"
		if h.name != "otlp" {
			utilization += "_ratio"
		}
		for _, s := range want.truth.Services {
			labels := fmt.Sprintf(`{k8s_namespace_name=%q,service_name=%q}`, s.Namespace, s.Name)
			assert.Equal(t, float64(len(s.Pods)), h.sum(t, "sum(gpu_pod_state"+labels+")", at), "%s: %s: %s", h.name, what, s.Name)
			assert.Equal(t, float64(len(s.Pods)), h.sum(t, "sum(gpu_service_pods"+labels+")", at), "%s: %s: %s", h.name, what, s.Name)
			assert.InDelta(t, s.Utilization, h.sum(t, "sum("+utilization+labels+")", at), 0.0051, "%s: %s: %s", h.name, what, s.Name)
		}
	}
	assert.Empty(t, apart(sets[r.write.name], sets[r.page.name]), "%s: remote write and the page name the same series", what)
}

// always: at every moment the devices' sum is a truth of about then, each service
// has the memory of some of its pods, each device or replica has one owner, and
// none of the pods is missing.
func (r *readBack) always(t *testing.T, h *history, from, to time.Time) {
	t.Helper()
	wrong := 0
	for at := from; at.Before(to); at = at.Add(50 * time.Millisecond) {
		var allowed []float64
		late := r.late(t, at)
		for i, truth := range r.truths {
			if truth.at.After(at) || i+1 < len(r.truths) && r.truths[i+1].at.Before(at.Add(-3*time.Second-late)) {
				continue
			}
			allowed = append(allowed, truth.devices)
		}
		got := h.sum(t, "sum("+inBytes(h, "hw_gpu_memory_usage")+`{hw_parent=""})`, at)
		for key, sum := range h.query(t, "sum by (service_name) ("+inBytes(h, "gpu_service_memory_usage")+")", at) {
			if could := r.couldUse(key, at, late); !slices.Contains(could, sum) {
				if wrong++; wrong <= 5 {
					t.Errorf("%s at %v: %s uses %v, one of %v", h.name, at.Sub(r.truths[0].at), key, sum, could)
				}
			}
		}
		held := h.query(t, "count by (hw_id) (gpu_allocation) > 1", at)
		twice := h.query(t, `count by (hw_id) (`+inBytes(h, "hw_gpu_memory_usage")+`) > 1`, at)
		missing := h.query(t, `gpu_service_pods{gpu_pod_state="missing"} > 0`, at) // each pod ended well
		if !slices.Contains(allowed, got) || len(held) > 0 || len(twice) > 0 || len(missing) > 0 {
			if wrong++; wrong <= 5 {
				t.Errorf("%s at %v: %v bytes, one of %v; %v %v %v", h.name, at.Sub(r.truths[0].at), got, allowed, held, twice, missing)
			}
		}
	}
	assert.Zero(t, wrong, "%s: moments at which a sum was wrong", h.name)
}

// late is how much more than two intervals before a moment the exporter was scraped last,
// on a busy machine: what was then is all that can be known.
func (r *readBack) late(t *testing.T, at time.Time) time.Duration {
	scraped := r.otlp.sum(t, `max(timestamp(hw_gpu_memory_usage{hw_parent=""}))`, at)
	if math.IsNaN(scraped) {
		return 0
	}
	return max(0, at.Sub(time.UnixMilli(int64(1000*scraped)))-2*time.Second)
}

// couldUse are the sums over some pods of a service, as each was within the last
// evaluations: those that warm up or have ended are left out, and the kubelet may
// still give a device to a pod that has let go of its memory.
func (r *readBack) couldUse(service string, at time.Time, late time.Duration) []float64 {
	pods := map[string][]float64{}
	for i, truth := range r.truths {
		if truth.at.After(at) || i+1 < len(r.truths) && r.truths[i+1].at.Before(at.Add(-8*time.Second-late)) {
			continue
		}
		for _, s := range truth.truth.Services {
			if service == fmt.Sprintf(`{service_name=%q}`, s.Name) {
				for _, p := range s.Pods {
					pods[p.Name] = append(pods[p.Name], float64(p.MemoryUsedMiB<<20))
				}
			}
		}
	}
	sums := []float64{0}
	for _, values := range pods {
		for _, sum := range slices.Clone(sums) {
			for _, v := range values {
				sums = append(sums, sum+v)
			}
		}
	}
	return sums
}

// stable: every series that ever was is one of a moment at which all stood still.
// But a page may be newer than what the kubelet reported: then a replica has for a
// scrape its device's utilization, for its own is no longer on the page.
func (r *readBack) stable(t *testing.T, h *history, known map[string]bool) {
	t.Helper()
	var odd []string
	for _, s := range h.series(t) {
		passing := strings.Contains(s, `__name__="gpu_pod_state"`) || strings.Contains(s, `gpu_value_scope="device"`)
		if !known[s] && !passing {
			odd = append(odd, s)
		}
	}
	assert.Empty(t, odd, "%s: series that came and went", h.name)
}

// oneCall: all points of an evaluation are in one request and have one time.
func (r *readBack) oneCall(t *testing.T) {
	t.Helper()
	evaluations, times := 0, map[pcommon.Timestamp]bool{}
	for _, md := range r.otlp.requests() {
		of := map[pcommon.Timestamp]bool{}
		others := 0
		each(md, func(_ pcommon.Map, name string, dp pmetric.NumberDataPoint) {
			if strings.HasPrefix(name, "gpu.service.") || strings.HasPrefix(name, "gpu.summary.") || name == "gpu.pod.state" {
				of[dp.Timestamp()] = true
			} else {
				others++
			}
		})
		if len(of) == 0 {
			continue
		}
		evaluations++
		assert.Len(t, of, 1)
		assert.Zero(t, others)
		for at := range of {
			assert.False(t, times[at], "%v in two requests", at.AsTime())
			times[at] = true
		}
	}
	assert.Greater(t, evaluations, 20)
}

// apart is what is in one list alone: "- " in the first, "+ " in the second.
func apart(a, b []string) (lines []string) {
	in := func(list []string) map[string]bool {
		set := map[string]bool{}
		for _, s := range list {
			set[s] = true
		}
		return set
	}
	inA, inB := in(a), in(b)
	for s := range inA {
		if !inB[s] {
			lines = append(lines, "- "+s)
		}
	}
	for s := range inB {
		if !inA[s] {
			lines = append(lines, "+ "+s)
		}
	}
	slices.Sort(lines)
	return lines
}
