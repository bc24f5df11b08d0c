// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/judge"
)

// dashboard is what the tests read of Grafana's JSON.
type dashboard struct {
	UID        string `json:"uid"`
	Title      string
	Templating struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
	Panels []panel
}

type panel struct {
	Type, Title, Description string
	Datasource               *struct{ Type, UID string }
	Targets                  []struct {
		Expr         string
		LegendFormat string
		Datasource   *struct{ Type, UID string }
	}
	FieldConfig struct {
		Defaults struct {
			Unit   string
			Custom struct{ SpanNulls any }
		}
		Overrides []struct {
			Matcher    struct{ Options any }
			Properties []struct {
				ID    string
				Value any
			}
		}
	}
	Transformations []struct {
		ID      string
		Options struct{ RenameByName map[string]string }
	}
}

func boards(t *testing.T) (all []dashboard) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "mixin", "dashboards", "*.json"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var d dashboard
		require.NoError(t, json.Unmarshal(text, &d), file)
		assert.Equal(t, d.UID+".json", filepath.Base(file))
		all = append(all, d)
	}
	require.NotEmpty(t, all)
	return all
}

// filled is an expression as Grafana sends it, with All chosen everywhere.
func filled(d dashboard, expr string) string {
	for from, to := range map[string]string{"$__rate_interval": "1m", "$__interval": "15s", "$__range": "5m"} {
		expr = strings.ReplaceAll(expr, from, to)
	}
	for _, v := range d.Templating.List {
		expr = strings.NewReplacer("${"+v.Name+"}", ".*").Replace(expr)
		expr = regexp.MustCompile(`\$`+v.Name+`\b`).ReplaceAllString(expr, ".*")
	}
	return expr
}

var histogramSeries = regexp.MustCompile("_(bucket|sum|count)$")

// metrics are the names that an expression reads.
func metrics(t *testing.T, expr string) (names []string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	require.NoError(t, err, expr)
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		for _, matcher := range s.LabelMatchers {
			if matcher.Name == "__name__" {
				for _, name := range strings.Split(matcher.Value, "|") {
					names = append(names, histogramSeries.ReplaceAllString(name, ""))
				}
			}
		}
		return nil
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// calls are the functions and aggregations that an expression uses.
func calls(expr, f string) bool { return regexp.MustCompile(`\b` + f + `\b`).MatchString(expr) }

var perSecond = []string{"cps", "eps", "wps", "reqps", "ops", "mps", "recps"}

// units are those in which Grafana may show what an expression gives.
func units(expr string, names []string) []string {
	plain := []string{"short", "none"}
	isRate := calls(expr, "rate")
	var allowed []string
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, "gpu_usage_") || strings.HasPrefix(name, "gpu_capacity_"):
			allowed = append(allowed, usageUnits(expr, name, isRate)...)
		case strings.Contains(expr, ") / (sum") && !strings.HasSuffix(name, "_seconds"):
			allowed = append(allowed, append(plain, "percentunit")...) // a share, or so many for each
		case calls(expr, "count") || strings.Contains(expr, ") / sum"):
			allowed = append(allowed, plain...)
		case strings.HasSuffix(name, "_ratio"), strings.Contains(name, "_ratio:"), strings.HasSuffix(name, "_usage_perc"):
			allowed = append(allowed, "percentunit")
		case strings.HasSuffix(name, "_bytes_per_second"):
			allowed = append(allowed, "binBps")
		case strings.HasSuffix(name, "_bytes_total"):
			allowed = append(allowed, map[bool]string{true: "binBps", false: "bytes"}[isRate])
		case isRate && strings.Contains(expr, name+"_count{") && !strings.Contains(expr, name+"_sum{") && !calls(expr, "histogram_quantile"):
			allowed = append(allowed, perSecond...)
		case strings.HasSuffix(name, "_bytes"), strings.HasSuffix(name, "memory_rss"), strings.HasSuffix(name, "_store_size"):
			allowed = append(allowed, "bytes")
		case strings.HasSuffix(name, "_watts"):
			allowed = append(allowed, "watt")
		case strings.HasSuffix(name, "_celsius"):
			allowed = append(allowed, "celsius")
		case strings.HasSuffix(name, "_hertz"):
			allowed = append(allowed, "hertz")
		case strings.HasSuffix(name, "_joules_total"):
			allowed = append(allowed, map[bool]string{true: "watt", false: "joule"}[isRate])
		case strings.HasSuffix(name, "_seconds_total"), strings.HasSuffix(name, "_cpu_seconds"):
			// Seconds in a second are a share.
			allowed = append(allowed, map[bool]string{true: "percentunit", false: "s"}[isRate])
		case strings.HasSuffix(name, "_seconds"), strings.HasSuffix(name, "_uptime"), strings.HasSuffix(name, "_age"),
			strings.Contains(name, "_duration"):
			allowed = append(allowed, "s")
		case isRate:
			allowed = append(allowed, perSecond...)
		case calls(expr, "avg_over_time"):
			allowed = append(allowed, append(plain, "percentunit")...) // how much of the time a flag was set
		default:
			allowed = append(allowed, plain...)
		}
	}
	return allowed
}

// usageUnits are those of what gpu_cost counts: GPUs and GPU-hours, money, energy.
func usageUnits(expr, name string, isRate bool) []string {
	hours := strings.HasSuffix(expr, " / 3600")
	switch {
	case strings.Contains(expr, ") / (sum"):
		return []string{"percentunit"}
	case strings.HasSuffix(name, "_seconds_total") && isRate != hours, strings.HasSuffix(name, "_cost_total"):
		return []string{"short"}
	case strings.HasSuffix(name, "_joules_total"):
		return []string{map[bool]string{true: "watt", false: "watth"}[isRate]}
	case strings.HasSuffix(name, "_grams_total"):
		return []string{"massg"}
	default:
		return nil
	}
}

var legendLabel = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// optional are labels that a device or service has or not: of the first two, one.
var optional = map[string]bool{"slurm_job_id": true, "k8s_node_name": true, "host_name": true, "gpu_mig_instance_id": true, "k8s_cluster_name": true, "gpu_partition_id": true, "note": true, "k8s_namespace_name": true, "service_namespace": true}

// What every panel asks is answered, with the labels that its legend names, in
// the unit of what it asks for.
func TestEveryPanelHasData(t *testing.T) {
	t.Parallel() // it waits for the clock, and TestScenarios computes
	w := start(t, healthyFleet())
	trouble, fired := w.story(t)
	t.Run("alerts", func(t *testing.T) { judgeStory(t, trouble, fired) })
	t.Run("usage", func(t *testing.T) { w.usage(t, trouble.Add(-2*scrape)) })
	t.Run("accounts", w.accounts)
	t.Run("integrated", func(t *testing.T) { w.integrated(t, trouble.Add(-2*scrape)) })
	for _, d := range boards(t) {
		t.Run(d.UID, func(t *testing.T) {
			for _, p := range d.Panels {
				if p.Type == "row" {
					continue
				}
				for i, q := range p.Targets {
					w.check(t, d, p, filled(d, q.Expr), q.LegendFormat, p.unit(i))
				}
			}
		})
	}
}

func (w *world) check(t *testing.T, d dashboard, p panel, expr, legend, unit string) {
	t.Helper()
	names := metrics(t, expr)
	require.NotEmpty(t, names, expr)
	seen, samples := map[string]bool{}, 0
	for at := w.began.Add(time.Minute); at.Before(w.now()); at = at.Add(scrape) {
		for _, s := range w.ask(t, expr, at) {
			samples++
			s.Metric.Range(func(l label) { seen[l.Name] = true })
		}
	}
	assert.NotZero(t, samples, "%s: %s: no data: %s", d.UID, p.Title, expr)
	for _, l := range legendLabel.FindAllStringSubmatch(legend, -1) {
		assert.True(t, seen[l[1]] || optional[l[1]], "%s: %s: the legend names %s, and no series has it: %s", d.UID, p.Title, l[1], expr)
	}
	if strings.Contains(legend, "service_namespace") {
		assert.True(t, seen["service_namespace"] || seen["k8s_namespace_name"], "%s: %s: no namespace: %s", d.UID, p.Title, expr)
	}
	if strings.Contains(legend, "host_name") {
		assert.True(t, seen["host_name"] || seen["k8s_node_name"], "%s: %s: no node: %s", d.UID, p.Title, expr)
	}
	assert.Subset(t, units(expr, names), []string{unit}, "%s: %s: unit of %s", d.UID, p.Title, expr)
}

// unit is that of a query: of a table, its column's.
func (p panel) unit(query int) string {
	unit, column := p.FieldConfig.Defaults.Unit, ""
	for _, t := range p.Transformations {
		for _, from := range []string{"Value", "Value #" + string(rune('A'+query))} {
			if to, ok := t.Options.RenameByName[from]; ok {
				column = to
			}
		}
	}
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			if text, ok := property.Value.(string); ok && o.Matcher.Options == column && column != "" && property.ID == "unit" {
				unit = text
			}
		}
	}
	return unit
}

// Panels of what not every vendor measures state that for a service of other vendors, and
// have no more than the values where one of its devices has them.
func TestUnmeasuredPanels(t *testing.T) {
	series := ""
	add := func(service, id, more string, tensor bool) {
		labels := `k8s_cluster_name="c1",k8s_namespace_name="ml",service_name="` + service + `"`
		series += `hw_gpu_memory_usage_bytes{` + labels + `,k8s_node_name="n1",hw_id="` + id + `"` + more + "} 1x60\n"
		if tensor {
			series += `gpu_service_pipe_active_ratio{gpu_pipe="tensor",` + labels + "} 0.5x60\n"
			series += `gpu_pipe_active_ratio{gpu_pipe="tensor",` + labels + `,k8s_node_name="n1",hw_id="` + id + `"` + more + "} 0.5x60\n"
		}
	}
	uuid := "GPU-8d5e0f5c-0000-4000-8000-00000000000"
	add("nvidia", uuid+"1", "", true)
	add("silent", uuid+"2", "", false) // its fields are off: no data, and not another vendor's
	add("amd", "GPU-c3ff88426fc31c9e", "", false)
	add("part", "GPU-c3ff88426fc31c9e/3", `,gpu_partition_id="3"`, false)
	add("guest", "GPU-serial-0123", "", false)
	add("profiled", "GPU-c3ff88426fc31c9f", "", true)
	add("gaudi", "GAUDI-AN123", "", false)
	add("intel", "PCI-n1@0000:4d:00.0/1", `,gpu_partition_id="1"`, false)
	add("mixed", uuid+"3", "", false)
	add("mixed", "GAUDI-AN124", "", false)
	w := &world{db: promqltest.LoadedStorage(t, "load 15s\n"+series), engine: judge.NewEngine()}
	found := 0
	for _, d := range boards(t) {
		for _, p := range d.Panels {
			perService := d.UID == "otelcol-gpu-service" && p.Title == "Tensor activity"
			if !perService && (d.UID != "otelcol-gpu-node" || p.Title != "Pipes") {
				continue
			}
			found++
			measured, unmeasured := []string{}, []string{}
			for _, s := range w.ask(t, filled(d, p.Targets[0].Expr), time.Unix(600, 0)) {
				of := s.Metric.Get("service_name")
				if !perService {
					of = s.Metric.Get("hw_id")
				}
				if math.IsNaN(s.F) {
					assert.Equal(t, "not measured by this vendor", s.Metric.Get("note"))
					unmeasured = append(unmeasured, of)
				} else {
					measured = append(measured, of)
				}
			}
			slices.Sort(measured)
			slices.Sort(unmeasured)
			if perService {
				assert.Equal(t, []string{"nvidia", "profiled"}, measured, p.Type)
				assert.Equal(t, []string{"amd", "gaudi", "guest", "intel", "part"}, unmeasured, p.Type)
				continue
			}
			assert.Equal(t, []string{uuid + "1", "GPU-c3ff88426fc31c9f"}, measured)
			assert.Equal(t, []string{"GAUDI-AN123", "GAUDI-AN124", "GPU-c3ff88426fc31c9e", "GPU-c3ff88426fc31c9e/3", "GPU-serial-0123", "PCI-n1@0000:4d:00.0/1"}, unmeasured)
		}
	}
	assert.Equal(t, 3, found)
}
