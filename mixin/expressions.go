// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
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

func notMatching(label, pattern string) queries.Selector {
	return queries.Selector(label + `!~"` + pattern + `"`)
}

// name is a legend of labels.
func name(labels ...string) string {
	parts := make([]string, len(labels))
	for i, l := range labels {
		parts[i] = "{{" + l + "}}"
	}
	return strings.Join(parts, " ")
}

// note is the label of series that stand for what is not measured.
const note = "note"

// unmeasured adds NaN, which is no value, for each group of devices whose vendors do not
// measure the activity of pipes and of DRAM: so that a panel states that, and is not empty.
func unmeasured(measured string, s queries.Selector, labels ...string) string {
	devices := func(of queries.Selector) string {
		return most(last(queries.Of(queries.MemoryUsage, s, of)), labels...)
	}
	none := devices(matching(queries.Device, deviceid.OthersPattern)) + " * NaN unless" + on(labels...) + devices(notMatching(queries.Device, deviceid.OthersPattern))
	return measured + " or" + on(labels...) + `label_replace(` + none + `, "` + note + `", "not measured by this vendor", "", "")`
}

var (
	service = queries.OfServices
	device  = []string{queries.Cluster, queries.Node, queries.Host, queries.Index, queries.MIGInstance, queries.Partition, queries.Device}

	// A service is in a namespace or, on Slurm, in an account: the other is empty.
	ofNamespace = "{{" + queries.Namespace + "}}{{" + queries.Account + "}}"
	ofService   = ofNamespace + " {{" + queries.Service + "}}"
	// A node has a name or is a host: the other is empty.
	ofDevice = "{{" + queries.Node + "}}{{" + queries.Host + "}} GPU {{" + queries.Index + "}} {{" + queries.MIGInstance + "}}{{" + queries.Partition + "}}"
)
