// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// DeviceLost is gpu.device.lost.
var DeviceLost = rule.Rule{
	Event: names.EventDeviceLost, Set: rule.Device,
	Reads: []rule.Input{{Metric: &names.ExporterUp}, {Metric: &names.GPUNodeMIGReconfiguring}, {Metric: &names.GPUDeviceSuspended}, {Metric: &names.GPUAllocation}},
	// The successful scrapes in a row without the device.
	Keys: []rule.Key{rule.Count("scrapes", 3, 1, 1000)},
	Doc: rule.Doc{
		Raised:  "absent from 3 `scrapes` in a row that succeeded, and for about 3 of its own intervals; or on them without a value; not where its exporter leaves out what has no owner",
		Cleared: "seen again, with values, or replaced by another board", Severity: "ERROR", Key: perDevice,
	},
}

// DeviceLostSpec is the condition of DeviceLost.
var DeviceLostSpec = condition.Once(plog.SeverityNumberError)

// Absence is how a device is missing from the pages of its exporter.
type Absence struct {
	Scrapes  int           // that were without it
	Away     time.Duration // since its last point
	Interval time.Duration // between its points before; 0: unknown
}

// Lost reports whether a device with such an absence is lost: it was away for as many of
// its own intervals as scrapes, less half of one. Of an exporter with several pages, as
// those of a proxy under one address, three scrapes mean nothing.
func (a Absence) Lost(scrapes int, staleness time.Duration) bool {
	switch {
	case a.Scrapes < scrapes:
		return false
	case a.Interval == 0:
		return a.Away >= nearly(staleness)
	}
	return a.Away >= a.Interval*time.Duration(2*scrapes-1)/2
}

// Blank reports whether a device is lost that was on so many pages without a value, for
// that long.
func Blank(pages int, lasts time.Duration, scrapes int, staleness time.Duration) bool {
	return pages >= scrapes && lasts >= nearly(staleness)
}

// nearly is the time of three scrapes, where staleness is that of three intervals.
func nearly(staleness time.Duration) time.Duration { return staleness * 5 / 6 }

// DescribeLost completes the event about a lost device; instances are the MIG instances
// of it.
func DescribeLost(d *subject.Device, blank bool, instances []string, ev *event.Event) {
	d.About(ev)
	if blank {
		d.Describe(ev, " is on the page of its exporter, and every value of it is blank")
	} else {
		d.Describe(ev, " is gone: its exporter answers without it")
	}
	ev.Add(func(attrs pcommon.Map) { event.PutList(attrs, names.GPUDeviceInstances, instances) })
}

// DescribeFound completes the event about a device that was lost.
func DescribeFound(d *subject.Device, blank bool, ev *event.Event) {
	d.About(ev)
	if blank {
		d.Describe(ev, " has values again")
	} else {
		d.Describe(ev, " is back")
	}
}
