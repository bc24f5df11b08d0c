// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
				names = append(names, histogramSeries.ReplaceAllString(matcher.Value, ""))
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
var optional = map[string]bool{"k8s_node_name": true, "host_name": true, "gpu_mig_instance_id": true, "k8s_cluster_name": true}

// What every panel asks is answered, with the labels that its legend names, in
// the unit of what it asks for.
func TestEveryPanelHasData(t *testing.T) {
	t.Parallel() // it waits for the clock, and TestScenarios computes
	w := start(t, healthyFleet())
	trouble, fired := w.story(t)
	t.Run("alerts", func(t *testing.T) { judgeStory(t, trouble, fired) })
	t.Run("usage", func(t *testing.T) { w.usage(t, trouble.Add(-2*scrape)) })
	t.Run("accounts", w.accounts)
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
