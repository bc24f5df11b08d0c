// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"

import (
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Metrics are the metrics of the vocabulary that engines fill, in the order of the
// documentation: of servers, or of gateways. The metric up is made of the scrape.
func Metrics(gateway bool) []*names.Metric {
	if gateway {
		return []*names.Metric{
			&names.InferenceGatewayRequestDuration, &names.InferenceGatewayTimeToFirstToken, &names.InferenceGatewayInterTokenLatency,
			&names.InferenceGatewayTimePerOutputToken, &names.InferenceGatewayQueueTime, &names.InferenceGatewayTimePerToken,
			&names.InferenceGatewayRequests, &names.InferenceGatewayRequestsFinished, &names.InferenceGatewayTokens,
			&names.InferenceGatewayRequestTokens, &names.InferenceGatewayEndpointsReady,
			&names.InferenceGatewayPoolKVCacheUtilization, &names.InferenceGatewayPoolRequestsMean,
		}
	}
	return []*names.Metric{
		&names.GenAIRequestDuration, &names.GenAITimeToFirstToken, &names.GenAITimePerOutputToken,
		&names.InferenceInterTokenLatency, &names.InferenceTimePerToken, &names.InferenceQueueTime, &names.InferencePrefillTime,
		&names.InferenceDecodeTime, &names.InferenceInferenceTime, &names.InferenceRequestTokens, &names.InferenceRequests,
		&names.InferenceRequestsLimit, &names.InferenceRequestsFinished, &names.InferenceTokens, &names.InferencePrefixCacheQueries,
		&names.InferencePrefixCacheHits, &names.InferencePrefixCacheHitRatio, &names.InferenceKVCacheUtilization,
		&names.InferenceKVCacheCapacity, &names.InferencePreemptions, &names.InferenceSpeculationDrafts,
		&names.InferenceSpeculationDraftTokens, &names.InferenceSpeculationAcceptedTokens, &names.InferenceSpeculationAcceptanceRatio,
		&names.InferenceBatchSize, &names.InferenceIterationTokens, &names.InferenceExecutions, &names.InferenceInferences,
		&names.InferenceLoraAdapters, &names.InferenceServerState, &names.InferenceModelLoadTime,
	}
}

// Markdown returns the documentation of the engines' families.
func Markdown(engines []*Engine) string {
	var b strings.Builder
	b.WriteString("# Families\n\nWhich family of an engine's page becomes which metric. Where several are named, the first that is on\n" +
		"the page counts; where a metric has several lines with the same attributes, the first whose families\n" +
		"are on the page does. The names are those behind the engine's prefix, and counters may end in\n`_total`. Families that are in no table pass as they are.\n\n")
	for _, e := range engines {
		fmt.Fprintf(&b, "- [%s](#%s)\n", e.Title, anchor(e.Title))
	}
	for _, e := range engines {
		e.markdown(&b)
	}
	return b.String()
}

func anchor(title string) string {
	keep := func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_':
			return r
		}
		return -1
	}
	return strings.Map(keep, strings.ToLower(title))
}

func (e *Engine) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n", e.Title)
	fmt.Fprintf(b, "`inference.engine` is `%s`. Prefixes: %s.\n", e.Name, codes(e.Prefixes, "none"))
	if len(e.Marks) > 0 {
		fmt.Fprintf(b, "A page with one of %s is of this engine, and not of `%s`.\n", codes(e.Marks, ""), e.Hides)
	}
	if len(e.Repeats) > 0 {
		fmt.Fprintf(b, "On its pages, the families of %s are of the same requests, and pass as they are.\n", codes(e.Repeats, ""))
	}
	if e.Stage != "" {
		fmt.Fprintf(b, "Series with another `%s` than 0 repeat the requests of stage 0: they count only where the highest of several is taken.\n", e.Stage)
	}
	switch {
	case len(e.NamedBy) > 0:
		fmt.Fprintf(b, "`%s` is the label `%s` of %s.\n", names.InferenceGateway, e.NamedLabel, codes(e.NamedBy, ""))
	case e.Named != "":
		fmt.Fprintf(b, "`%s` is `%s`.\n", names.InferenceGateway, e.Named)
	}
	if slices.Contains(e.Prefixes, "") {
		b.WriteString("Names without a prefix count on a page that has five of them, or where discovery found this engine.\n")
	}
	b.WriteString("\n| Metric | Attributes | Families | How |\n|---|---|---|---|\n")
	for _, m := range Metrics(e.Gateway) {
		for i := range e.Rows {
			if r := &e.Rows[i]; r.Metric == m {
				fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", m.Name, r.attributes(), r.sources(), r.how())
			}
		}
	}
	var cannot []string
	for _, m := range Metrics(e.Gateway) {
		if reason, ok := e.Cannot[m]; ok {
			cannot = append(cannot, fmt.Sprintf("| `%s` | %s |\n", m.Name, reason))
		}
	}
	if len(cannot) > 0 {
		b.WriteString("\nCannot be had:\n\n| Metric | Because |\n|---|---|\n" + strings.Join(cannot, ""))
	}
	if len(e.Passed) > 0 {
		fmt.Fprintf(b, "\nPass as they are: %s.\n", codes(e.Passed, ""))
	}
	if len(e.Dropped) > 0 {
		fmt.Fprintf(b, "\nLeft out with `names: normalised`: %s.\n", codes(e.Dropped, ""))
	}
}

func codes(list []string, empty string) string {
	var out []string
	for _, s := range list {
		if name, ok := strings.CutPrefix(s, "="); ok {
			out = append(out, "`"+name+"` (no prefix)")
		} else if s == "" {
			out = append(out, empty)
		} else {
			out = append(out, "`"+s+"`")
		}
	}
	return strings.Join(out, ", ")
}

func (r *Row) attributes() string {
	var out []string
	for _, a := range r.Attributes {
		out = append(out, "`"+a.Key+"`="+a.Value)
	}
	for _, d := range r.Dimensions {
		if d.Outcome != "" {
			out = append(out, "`"+names.InferenceOutcome+"`")
		}
		out = append(out, "`"+d.Attribute+"` from `"+d.Label+"`")
	}
	return strings.Join(out, ", ")
}

func (r *Row) sources() string {
	out := codes(r.From, "") + r.Where.text()
	if r.Or != "" {
		out += " or " + r.Or
	}
	if r.Beside != "" {
		out += " beside `" + r.Beside + "`"
	}
	if len(r.Unless) > 0 {
		out += "; not beside " + codes(r.Unless, "")
	}
	return out
}

func (s Selector) text() string {
	if s.Label == "" {
		return ""
	}
	return " with `" + s.Label + "`=" + s.Value
}

func (r *Row) how() string {
	var out []string
	with := "`" + r.With + "`" + r.WithWhere.text()
	switch r.Rule {
	case Product:
		out = append(out, "multiplied by "+with)
	case Quotient:
		out = append(out, "divided by "+with)
	case Difference:
		out = append(out, "less "+with)
	case Mean:
		out = append(out, "sum of a histogram without bounds, whose count is "+with)
	case SumOf:
		out = append(out, "sum of the histogram")
	case CountOf:
		out = append(out, "count of the histogram")
	case Given:
		out = append(out, "absent where "+with+" is 0")
	case LabelProduct:
		out = append(out, "label "+strings.ReplaceAll(codes(r.WithLabels, ""), ", ", " times label "))
	case LabelList:
		out = append(out, "entries of the label "+codes(r.WithLabels, "")+" of the newest series")
	}
	if r.Div != 0 {
		out = append(out, fmt.Sprintf("divided by %g", r.Div))
	}
	if r.Mul != 0 {
		out = append(out, fmt.Sprintf("multiplied by %g", r.Mul))
	}
	if r.ZeroIsAbsent {
		out = append(out, "0 is unset")
	}
	if r.Negative {
		out = append(out, "-1 is off")
	}
	if r.Monotonic {
		out = append(out, "a gauge on the page that only rises")
	}
	if r.Unit != "" {
		out = append(out, fmt.Sprintf("in `%s` where the help text contains %q", r.Unit, r.UnitHelp))
	}
	if r.Fold == Highest {
		out = append(out, "of several the highest")
	}
	if r.Note != "" {
		out = append(out, r.Note)
	}
	return strings.Join(slices.DeleteFunc(out, func(s string) bool { return s == "" }), "; ")
}
