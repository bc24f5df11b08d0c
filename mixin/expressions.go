// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// What a chart shows at a moment is about the time since the moment before, and
// $__rate_interval is at least four scrapes: so a value is never older than that,
// and silence is a gap instead of five minutes of the last value.

// mean is what gauges were on average, last what they were last.
func mean(series string) string { return "avg_over_time(" + series + "[$__rate_interval])" }
func last(series string) string { return "last_over_time(" + series + "[" + lately + "])" }

// lately is how far a chart looks back for what is there now.
const lately = "$__rate_interval"

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
		return most(last(queries.Reports(s, of)), labels...)
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

// counter is a counter as alerts and recorded series read it: by the labels that identify it,
// whatever its other labels are. Its rise is right when Prometheus was away, when labels change
// that do not identify it (a pod, an index), and when it appears with the first that it counts.
type counter struct {
	from   string   // selects its series, which have labels beside the key
	series string   // of these, a value for each key
	key    []string // labels that identify the counter
	// reports has a value for each subject whenever the subject is read; subject is a part of key.
	reports string
	subject []string
	// young selects subjects that began within a time, so that all that they count is of it.
	young func(within time.Duration) string
}

// deviceCounter is a recorded counter of devices. Labels identify it beside its device.
func deviceCounter(record string, labels []string, s ...queries.Selector) counter {
	key, from := slices.Concat(byBoard, labels), queries.Of(record, s...)
	return counter{from: from, series: most(from, key...), key: key, reports: recordReadings, subject: byBoard}
}

// ownCounter is a counter of the Collector's own.
func ownCounter(series string, labels ...string) counter {
	key, uptime := slices.Concat(process, labels), most(queries.OwnUptime, process...)
	return counter{
		from: series, series: sum(series, key...), key: key, reports: uptime, subject: process,
		young: func(within time.Duration) string { return uptime + " < " + strconv.Itoa(int(within.Seconds())) },
	}
}

// grew asks for what counters of the Collector's own counted within a time, if anything.
func grew(series string, within time.Duration, labels ...string) string {
	return ownCounter(series, labels...).rise(within) + " > 0"
}

// during is what the counter, or something else, was at the steps of a time.
func during(series string, within time.Duration) string {
	step := "30s"
	if within > 15*time.Minute {
		step = "1m"
	}
	return series + "[" + model.Duration(within).String() + ":" + step + "]"
}

// missed is for how many steps a counter has to be absent while its subject reports until it
// counts as one that began: rows of one page arrive together, but not to the second.
const missed = "2"

// began asks for counters that began within a time: they were absent while their subject
// reported, or their subject began. A counter that was there before, and was not read because
// nothing was, did not begin.
func (c counter) began(within time.Duration) string {
	steps := "count_over_time(" + during(c.series, within) + ")"
	expr := steps + " + " + missed + " <=" + on(c.subject...) + "group_left () count_over_time(" + during(c.reports, within) + ")"
	if c.young != nil {
		expr += " or " + steps + " and" + on(c.subject...) + "(" + c.young(within) + ")"
	}
	return "(" + expr + ")"
}

// more asks for how much counters rose within a time after their first value in it.
func (c counter) more(within time.Duration) string {
	return "increase(" + during(c.series, within) + ")"
}

// rise asks for how much counters rose within a time. Those that began rose from 0; what a
// reset hides is in more already.
func (c counter) rise(within time.Duration) string {
	more, values := c.more(within), during(c.series, within)
	first := "(min_over_time(" + values + ") unless resets(" + values + ") > 0 and " + c.began(within) + ")"
	return "(" + more + " + " + first + " or " + more + " or " + first + ")"
}

// recently is the time within which a counter of a device has to rise for an alert.
const recently = 10 * time.Minute

// rose asks for how much a counter of devices rose lately, if at all, with its place.
func (c counter) rose() string { return c.located(c.rise(recently) + " > 0") }

// located adds the labels of place to an expression that has the key of the counter. Where
// they changed just now, those of one of its series are taken.
func (c counter) located(expr string) string {
	return "(" + expr + ") *" + on(c.key...) + "group_left (" + strings.Join(place, ",") + ") (topk" + queries.By(c.key...) + "(1, " + c.from + ") * 0 + 1)"
}

// place is the labels of where a device is and of its model, and may change.
var place = []string{queries.Node, queries.Host, queries.Model, queries.Index}

// byBoard is the labels that identify a device.
var byBoard = []string{queries.Cluster, queries.Device}
