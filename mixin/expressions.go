// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// What a chart shows at a moment is about the time since the moment before, and
// $__rate_interval is at least four scrapes: so a value is never older than that,
// and silence is a gap instead of five minutes of the last value.

// mean is what gauges were on average, last what they were last.
func mean(series string) string { return "avg_over_time(" + series + "[$__rate_interval])" }
func last(series string) string { return "last_over_time(" + series + "[$__rate_interval])" }

// rate is how fast counters rise a second, rise how far over what is on display.
func rate(series string) string { return "rate(" + series + "[$__rate_interval])" }
func rise(series string) string { return "increase(" + series + "[$__range])" }

func sum(series string, labels ...string) string   { return aggregate("sum", series, labels) }
func avg(series string, labels ...string) string   { return aggregate("avg", series, labels) }
func most(series string, labels ...string) string  { return aggregate("max", series, labels) }
func least(series string, labels ...string) string { return aggregate("min", series, labels) }
func count(series string, labels ...string) string { return aggregate("count", series, labels) }

func aggregate(operation, series string, labels []string) string {
	if len(labels) == 0 {
		return operation + "(" + series + ")"
	}
	return operation + queries.By(labels...) + "(" + series + ")"
}

// chosen matches a label with a variable's choice.
func chosen(label, variable string) queries.Selector {
	return queries.Selector(label + `=~"$` + variable + `"`)
}

// not matches what has another value of a label, set what has any.
func not(label, value string) queries.Selector {
	return queries.Selector(label + `!="` + value + `"`)
}
func set(label string) queries.Selector { return not(label, "") }

// matching matches a regular expression.
func matching(label, pattern string) queries.Selector {
	return queries.Selector(label + `=~"` + pattern + `"`)
}

// name is a legend of labels.
func name(labels ...string) string {
	parts := make([]string, len(labels))
	for i, l := range labels {
		parts[i] = "{{" + l + "}}"
	}
	return strings.Join(parts, " ")
}

var (
	service = []string{queries.Cluster, queries.Namespace, queries.Service}
	device  = []string{queries.Cluster, queries.Node, queries.Host, queries.Index, queries.MIGInstance, queries.Device}

	ofService = name(queries.Namespace, queries.Service)
	// A node has a name or is a host: the other is empty.
	ofDevice = "{{" + queries.Node + "}}{{" + queries.Host + "}} GPU {{" + queries.Index + "}} {{" + queries.MIGInstance + "}}"
)
