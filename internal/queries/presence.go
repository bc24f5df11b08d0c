// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package queries // import "github.com/otelcol-gpu/otelcol-gpu/internal/queries"

import (
	"strings"
	"time"
)

// Whether a device is there, and whether it reports, is decided here, for alerts, recorded
// series, dashboards and the console.

// readings are metrics of which a device has at least one while it is read. No single one is
// enough: a GPU that shares the memory of its machine has no memory usage, a MIG instance no
// power, a board in MIG mode no utilization.
var readings = []string{Utilization, MemoryUsage, Power, Temperature}

// wholeEngine leaves out the utilization of video engines.
var wholeEngine = Selector(Task + `=~"general|"`)

// Reports selects what devices report while they are read.
func Reports(s ...Selector) string { return anyOf(readings, And(wholeEngine, And(s...))) }

// There asks for devices that were there within a time, or now if that is empty: they report,
// or are suspended. Nothing is read of those that are suspended, so that they stay so.
func There(within string, s ...Selector) string {
	last := func(series string) string {
		if within == "" {
			return series
		}
		return "last_over_time(" + series + "[" + within + "])"
	}
	return "(" + last(Reports(s...)) + " or " + last(of(Suspended, s...)) + " == 1)"
}

// ThereOrNot selects the series by which devices are there, also of those that are not.
func ThereOrNot(s Selector) string {
	return anyOf(append(readings[:len(readings):len(readings)], Suspended), And(wholeEngine, s))
}

// DevicesSeen asks when devices were last there.
func DevicesSeen(s Selector) string {
	return "max" + identity + "(" + thereBy(s, func(times string) string { return times }) + ")"
}

// DevicesRemembered asks when devices were last there within a time. Those with ended series
// are in the answer too.
func DevicesRemembered(s Selector, within time.Duration) string {
	return "max" + identity + "(" + thereBy(s, func(times string) string {
		return "max_over_time((" + times + ")" + subquery(within) + ")"
	}) + ")"
}

// ReportedBefore asks which devices reported a time ago.
func ReportedBefore(s Selector, ago time.Duration) string {
	return "count" + deviceIdentity + "(" + Reports(s) + " offset " + duration(ago) + ")"
}

// DevicesBegan asks when devices began to report within a time. The answer is the last sample
// within the minute of the first one: DevicesBeganExactly asks within that minute.
func DevicesBegan(s Selector, within time.Duration) string {
	return reportBegan(s, within, time.Minute)
}
func DevicesBeganExactly(s Selector) string { return reportBegan(s, time.Minute, time.Second) }

func reportBegan(s Selector, within, step time.Duration) string {
	return "min" + deviceIdentity + "(" + eachReading(s, func(series string) string { return first(series, within, step) }) + ")"
}

// eachReading applies a function to every reading. The results are kept apart by a label,
// since readings of a device differ in nothing but their names.
func eachReading(s Selector, apply func(series string) string) string {
	parts := make([]string, len(readings))
	for i, metric := range readings {
		parts[i] = byMetric(metric, apply(of(metric, wholeEngine, s)))
	}
	return strings.Join(parts, " or ")
}

// thereBy applies a function to the times of all series by which devices are there.
func thereBy(s Selector, apply func(times string) string) string {
	asleep := of(Suspended, s)
	return eachReading(s, func(series string) string { return apply("timestamp(" + series + ")") }) +
		" or " + byMetric(Suspended, apply("timestamp("+asleep+") and "+asleep+" == 1"))
}

func byMetric(metric, expr string) string {
	return `label_replace(` + expr + `, "metric", "` + metric + `", "", "")`
}
