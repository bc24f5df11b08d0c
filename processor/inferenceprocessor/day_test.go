// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inferenceprocessor

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prompage"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/metadatatest"
)

// life is how long an engine lives before something happens to it, and scrapes how often
// a page of it is read meanwhile. A pod is forgotten before the next one has ended.
const (
	life    = 12 * time.Minute
	scrapes = 12
)

// aging are engines of which each life differs from the one before: the page at a scrape
// of a life. A nil page is one that could not be had.
var aging = []struct {
	name     string
	replaced bool // by a pod with another name
	unmarked bool // what ends has no marker, as on OTLP from elsewhere
	page     func(n, scrape int) []byte
}{
	{name: "restarts", page: func(n, scrape int) []byte {
		if scrape == 0 {
			return nil // it starts
		}
		return vllmPage("a", "0", began(n), 10*scrape, bounds(0))
	}},
	{name: "is replaced", replaced: true, page: func(n, scrape int) []byte {
		return vllmPage(fmt.Sprintf("model-%06d", n), "0", began(n), scrape, bounds(0))
	}},
	{name: "swaps its model", page: func(n, scrape int) []byte {
		return vllmPage([]string{"a", "b", "c"}[n%3], "0", 0, 1000*n+scrape, bounds(0))
	}},
	{name: "is upgraded", page: func(n, scrape int) []byte {
		return vllmPage("a", "0", began(n), scrape, bounds(n))
	}},
	{name: "loads adapters", page: func(n, scrape int) []byte {
		return fmt.Appendf(nil, "# TYPE vllm:lora_requests_info gauge\n"+
			"vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\"adapter-%d,adapter-%d\",waiting_lora_adapters=\"\"} %d\n",
			n, n*scrapes+scrape, n*scrapes+scrape)
	}},
	{name: "has workers that come and go", page: func(n, scrape int) []byte {
		page := "# TYPE ray_vllm_generation_tokens_total counter\n# TYPE ray_vllm_e2e_request_latency_seconds histogram\n"
		for age := range 2 { // of the workers, in lives
			labels := fmt.Sprintf("model_name=\"a\",WorkerId=\"%06d\"", n-age)
			count := age*scrapes + scrape
			page += fmt.Sprintf("ray_vllm_generation_tokens_total{%s} %d\n", labels, count) +
				histogramText("ray_vllm_e2e_request_latency_seconds", labels, count, bounds(0))
		}
		return []byte(page)
	}},
	{name: "ends nothing", unmarked: true, page: func(n, scrape int) []byte {
		return vllmPage("a", fmt.Sprintf("%06d", n), 0, scrape, bounds(n))
	}},
}

// began is when a life did, in seconds of 1970.
func began(n int) int { return int(benchTime.Unix()) + n*int(life/time.Second) }

// bounds are some that differ from life to life.
func bounds(n int) (out [4]float64) {
	for i := range out {
		out[i] = float64(i+1) + float64(n)/1e6
	}
	return out
}

func vllmPage(model, rank string, start, count int, bounds [4]float64) []byte {
	labels := fmt.Sprintf("engine=%q,model_name=%q", rank, model)
	var b strings.Builder
	fmt.Fprintf(&b, "process_start_time_seconds %d\n", start)
	fmt.Fprintf(&b, "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{%s} 3\n", labels)
	b.WriteString("# TYPE vllm:generation_tokens_total counter\n# TYPE vllm:request_success_total counter\n# TYPE vllm:time_to_first_token_seconds histogram\n")
	fmt.Fprintf(&b, "vllm:generation_tokens_total{%s} %d\n", labels, count)
	for _, reason := range []string{"stop", "length", "abort"} {
		fmt.Fprintf(&b, "vllm:request_success_total{%s,finished_reason=%q} %d\n", labels, reason, count)
	}
	b.WriteString(histogramText("vllm:time_to_first_token_seconds", labels, count, bounds))
	b.WriteString("vllm:of_no_row{" + labels + "} 1\n")
	return []byte(b.String())
}

func histogramText(name, labels string, count int, bounds [4]float64) string {
	var b strings.Builder
	for _, bound := range bounds {
		fmt.Fprintf(&b, "%s_bucket{%s,le=\"%v\"} %d\n", name, labels, bound, count)
	}
	fmt.Fprintf(&b, "%[1]s_bucket{%[2]s,le=\"+Inf\"} %[3]d\n%[1]s_count{%[2]s} %[3]d\n%[1]s_sum{%[2]s} %[3]d\n", name, labels, count)
	return b.String()
}

// A day of restarts, new pods, swapped models, upgrades and workers leaves no more
// behind than an hour of them.
func TestADayLeavesNoMoreThanAnHour(t *testing.T) {
	p, err := newProcessor(metadatatest.NewSettings(componenttest.NewTelemetry()), createDefaultConfig().(*Config), consumertest.NewNop())
	require.NoError(t, err)
	var now time.Time
	p.now = func() time.Time { return now }
	consume := func(md pmetric.Metrics, pod string) {
		md.ResourceMetrics().At(0).Resource().Attributes().PutStr(names.K8sPodName, pod)
		require.NoError(t, p.ConsumeMetrics(t.Context(), md))
	}
	// Every shard has every page once: what it uses again for the next one has grown.
	many := func(page []byte, markers bool) {
		for i := range 16 * shards {
			var target prompage.Target
			md, err := target.Scrape(page, now)
			require.NoError(t, err)
			if markers {
				md, err = target.Scrape(nil, now)
				require.NoError(t, err)
			}
			consume(md, fmt.Sprintf("same-%d", i))
		}
	}
	now = benchTime.Add(-time.Hour)
	for _, a := range aging {
		many(a.page(0, 1), false)
		many(a.page(0, 1), true)
	}
	left := func() map[string]int {
		many(aging[0].page(0, 1), false)
		size := map[string]int{"series": p.series.Used()}
		for i := range p.shards {
			size["targets"] += p.shards[i].t.Targets()
		}
		w := weight{seen: map[uintptr]bool{}, entries: size}
		w.add("shards", reflect.ValueOf(&p.shards))
		w.add("logged", reflect.ValueOf(&p.logged))
		return size
	}
	targets := make([]prompage.Target, len(aging))
	var hour map[string]int
	for n := range int(24 * time.Hour / life) {
		for scrape := range scrapes {
			now = benchTime.Add(time.Duration(n)*life + time.Duration(scrape)*life/scrapes)
			for i, a := range aging {
				pod := fmt.Sprintf("%s-%06d", a.name, 0)
				if a.replaced {
					if pod = fmt.Sprintf("%s-%06d", a.name, n); scrape == 0 {
						targets[i] = prompage.Target{}
					}
				}
				if a.unmarked {
					targets[i] = prompage.Target{}
				}
				md, err := targets[i].Scrape(a.page(n, scrape), now)
				require.NoError(t, err)
				consume(md, pod)
			}
		}
		if time.Duration(n+1)*life == time.Hour {
			hour = left()
		}
	}
	day := left()
	assert.Greater(t, hour["targets"], 16*shards)
	for what, n := range day {
		assert.LessOrEqual(t, n, hour[what], what)
	}
}

// weight adds up how many entries maps have and slices have room for, by the fields that
// lead to them. Pages are not followed: the last one of a shard is kept until the next.
type weight struct {
	seen    map[uintptr]bool
	entries map[string]int
}

func (w *weight) add(path string, v reflect.Value) {
	if strings.Contains(v.Type().PkgPath(), "/pdata/") {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && !w.seen[v.Pointer()] {
			w.seen[v.Pointer()] = true
			w.add(path, v.Elem())
		}
	case reflect.Interface:
		if !v.IsNil() {
			w.add(path, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			w.add(path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Map:
		w.entries[path] += v.Len()
		for each := v.MapRange(); each.Next(); {
			w.add(path+"[]", each.Value())
		}
	case reflect.Slice:
		w.entries[path] += v.Cap()
		for i := range v.Len() {
			w.add(path+"[]", v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			w.add(path+"[]", v.Index(i))
		}
	}
}
