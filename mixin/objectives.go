// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"bytes"
	_ "embed" // of the objectives
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

//go:embed objectives.yaml
var objectivesYAML []byte

// objective is a promise about the requests of a service.
type objective struct {
	// Within is a time in seconds; 0 where it is about no time.
	Within float64 `yaml:"within"`
	// Share of the requests that must keep it.
	Share float64 `yaml:"share"`
}

type objectives struct {
	FirstToken     objective `yaml:"time_to_first_token"`
	PerOutputToken objective `yaml:"time_per_output_token"`
	Served         objective `yaml:"served"`
}

// Burn rates: how many times faster than allowed the error budget is used up. At the
// first a budget of 30 days lasts two days, at the second five.
const (
	fastBurn = 14.4
	slowBurn = 6
)

// maxDigits is how many decimal places a time may have.
const maxDigits = 6

func readObjectives(text []byte) (o objectives, err error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&o); err != nil {
		return o, err
	}
	for name, of := range map[string]objective{"time_to_first_token": o.FirstToken, "time_per_output_token": o.PerOutputToken, "served": o.Served} {
		// With a larger budget not even a failure of all requests burns it so fast.
		if least := 1 - 1/fastBurn; of.Share <= least || of.Share >= 1 {
			return o, fmt.Errorf("%s: share is above %.3f and below 1", name, least)
		}
		if name == "served" {
			if of.Within != 0 {
				return o, fmt.Errorf("%s: has no time", name)
			}
			continue
		}
		if _, digits, _ := strings.Cut(decimal(of.Within), "."); of.Within < 0.0001 || len(digits) > maxDigits {
			return o, fmt.Errorf("%s: within is at least 0.0001 and has at most %d decimal places", name, maxDigits)
		}
	}
	return o, nil
}

// percent writes a share, decimal a number, without digits that come of computing.
func percent(share float64) string { return strconv.FormatFloat(share*100, 'g', 6, 64) + " %" }
func decimal(v float64) string     { return strconv.FormatFloat(v, 'f', -1, 64) }

// notAbove is a regular expression of the bounds of buckets that are not above a
// threshold of at least 0.0001, however they are written: 1, 1.0, 2.5e-05.
func notAbove(threshold float64) string {
	whole, fraction, _ := strings.Cut(decimal(threshold), ".")
	// below are the numbers of as many digits that are less, at one of the digits.
	below := func(digits, rest string, i int) (parts []string) {
		if d := digits[i]; d > '0' {
			parts = append(parts, digits[:i]+"[0-"+string(d-1)+"]"+rest)
		}
		return parts
	}
	const anyFraction = `(\.[0-9]+)?`
	parts := []string{`[0-9.]+e-(0[5-9]|[1-9][0-9]+)`}
	if len(whole) > 1 {
		parts = append(parts, fmt.Sprintf(`[0-9]{1,%d}`, len(whole)-1)+anyFraction)
	}
	for i := range whole {
		parts = append(parts, below(whole, strings.Repeat("[0-9]", len(whole)-1-i)+anyFraction, i)...)
	}
	for i := range fraction {
		for _, p := range below(fraction, "[0-9]*", i) {
			parts = append(parts, whole+`\.`+p)
		}
		parts = append(parts, whole+`\.`+fraction[:i]+"0*") // fewer digits
	}
	parts = append(parts, regexp.QuoteMeta(decimal(threshold))+map[bool]string{true: "0*", false: `(\.0+)?`}[fraction != ""])
	if fraction != "" {
		parts = append(parts, whole)
	}
	return strings.Join(parts, "|")
}

// indicator is what an objective is measured by.
type indicator struct {
	objective objective
	alert     string
	// kept and counted are recorded, in requests a second; bound is the largest bound
	// that is not above the threshold, in seconds.
	kept, counted, bound string
	histogram            string
}

func indicators(o objectives) []indicator {
	return []indicator{
		{o.FirstToken, "InferenceFirstTokenBudget", "namespace_service:inference_ttft_kept:rate5m", "namespace_service:inference_ttft_counted:rate5m", "namespace_service:inference_ttft_bound:seconds", queries.TimeToFirstToken},
		{o.PerOutputToken, "InferenceOutputTokenBudget", "namespace_service:inference_tpot_kept:rate5m", "namespace_service:inference_tpot_counted:rate5m", "namespace_service:inference_tpot_bound:seconds", queries.TimePerToken},
		{o.Served, "InferenceErrorBudget", "namespace_service:inference_served:rate5m", "namespace_service:inference_counted:rate5m", "", ""},
	}
}

// rules record what an objective counts: each layout of bounds by its largest bound that
// is not above the threshold, so that nothing is interpolated. Buckets are cumulative, so
// that is the highest of those that are not above. A layout that begins above it does not
// count at all.
func (n indicator) rules() []rule {
	if n.histogram == "" {
		all := queries.CountedRequests(queries.All, queries.OfServices, queries.InferenceWindow)
		bad := queries.FailedRequests(queries.All, queries.OfServices, queries.InferenceWindow)
		return []rule{{Record: n.kept, Expr: all + " - " + bad}, {Record: n.counted, Expr: all + " and " + n.kept}}
	}
	layout := append(service[:len(service):len(service)], queries.Bounds)
	within := queries.Of(n.histogram+"_bucket", queries.FromEngines, matching("le", strings.ReplaceAll(notAbove(n.objective.Within), `\`, `\\`)))
	rest := queries.Of(n.histogram+"_bucket", queries.FromEngines, queries.Is("le", "+Inf"))
	buckets := append(layout[:len(layout):len(layout)], "le")
	per := func(series string) string { return "rate(" + series + "[5m])" }
	return []rule{
		{Record: n.kept, Expr: sum(most(sum(per(within), buckets...), layout...), service...)},
		{Record: n.counted, Expr: sum(sum(per(rest), layout...)+" and"+on(layout...)+aggregate("group", within, layout), service...)},
		// With all in the last bucket, any quantile is the bound below it.
		{Record: n.bound, Expr: least("histogram_quantile(1, "+aggregate("group", within, buckets)+" * 0 or "+aggregate("group", rest, buckets)+")", service...) + " > 0"},
	}
}

// burns is the share of requests that did not keep the objective, where it used the error
// budget up at a rate over all of the windows; the value is that of the first.
func (n indicator) burns(rate float64, windows ...string) string {
	limit := strconv.FormatFloat(rate*(1-n.objective.Share), 'g', 6, 64)
	var parts []string
	for _, w := range windows {
		over := func(series string) string { return "sum_over_time(" + series + "[" + w + "])" }
		parts = append(parts, "1 - "+over(n.kept)+" / ("+over(n.counted)+" > 0) > "+limit)
	}
	return strings.Join(parts, " and ")
}

func (n indicator) alerts(what, meaning string, check, do []string) []alert {
	bound := ""
	if n.bound != "" {
		bound = fmt.Sprintf(` Counted at {{ range query (printf "%s{k8s_cluster_name=%%q,k8s_namespace_name=%%q,service_name=%%q}" $labels.%s $labels.%s $labels.%s) }}{{ .Value }}{{ end }} s,`+
			" the largest bound of the engine's histogram that is not above %s s.", n.bound, queries.Cluster, queries.Namespace, queries.Service, decimal(n.objective.Within))
	}
	budget := percent(1 - n.objective.Share)
	one := func(name, severity, wait string, rate float64, long, short string) alert {
		return alert{
			name: name, severity: severity, wait: wait, expr: n.burns(rate, long, short),
			summary: "{{ $value | humanizePercentage }} of the requests to " + theService + " of the last " + long + " " + what + "; " + budget + " may.",
			meaning: fmt.Sprintf("%s The error budget is used up %s times as fast as it may be, over the last %s and still over the last %s.", meaning, decimal(rate), long, short),
			bound:   bound, check: check, do: do,
		}
	}
	return []alert{
		one(n.alert+"Fast", critical, "2m", fastBurn, "1h", "5m"),
		one(n.alert+"Slow", warning, "15m", slowBurn, "6h", "30m"),
	}
}

//go:embed options.yaml
var optionsYAML []byte

// options are the keys of options.yaml.
type options struct {
	// HealthState is whether the state of a board pages, and not its causes.
	HealthState bool `yaml:"healthState"`
	// IdleSpendPerDay is how much a service may spend on idle devices within 24 hours, in
	// the currency of the prices.
	IdleSpendPerDay float64 `yaml:"idleSpendPerDay"`
}

func readOptions(text []byte) (o options, err error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&o); err != nil {
		return o, fmt.Errorf("options.yaml: %w", err)
	}
	if !(o.IdleSpendPerDay > 0) {
		return o, fmt.Errorf("options.yaml: idleSpendPerDay: %v: set it to an amount above 0", o.IdleSpendPerDay)
	}
	return o, nil
}

// severityOf returns the severity of an alert with these options.
func (o options) severityOf(a alert) string {
	if a.cause && o.HealthState || a.state && !o.HealthState {
		return info
	}
	return a.severity
}

// otherwise is what the runbook has about the other choice; empty where it makes no
// difference.
func (o options) otherwise(a alert) string {
	switch {
	case a.severity == info:
		return ""
	case a.cause && o.HealthState:
		return " It is a cause of the state of the board, which fires GPUHealthFailed, GPUHealthPredicted or GPUHealthDegraded. With `healthState: false` in [options.yaml](../../mixin/options.yaml) the severity is " + a.severity + "."
	case a.state:
		return " Causes of the state, such as GPUXIDFatal, are for information: `healthState` in [options.yaml](../../mixin/options.yaml)."
	}
	return ""
}
