// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicetable

import "github.com/otelcol-gpu/otelcol-gpu/internal/names"

// DerivedSeries is a metric whose values take more than one field, or more than
// its value: the receiver's mapping makes them, and the documentation says how.
type DerivedSeries struct {
	Metric *names.Metric
	From   []ID
	// Keys are the attributes of the points beside hw.id.
	Keys []string
	// Rule says in one sentence how the values come about.
	Rule string
}

// Derived are all metrics of a device that are not in Table.
var Derived = []DerivedSeries{
	{
		Metric: &names.GPUMemoryUsage, From: []ID{FBUsed},
		Rule: "The field; for a GPU in MIG mode without a row of its own the sum over its instances, if all of them say.",
	},
	{
		Metric: &names.GPUMemoryLimit, From: []ID{FBTotal, FBUsed, FBFree, FBReserved},
		Rule: "FB_TOTAL; without it FB_USED + FB_FREE + FB_RESERVED; where FB_RESERVED is absent (drivers before 510, which count it as used) FB_USED + FB_FREE. Sums over MIG instances as for the usage.",
	},
	{
		Metric: &names.GPUMemoryUtilization, From: []ID{FBTotal, FBUsed, FBFree, FBReserved},
		Rule: "Usage divided by limit, where both are known.",
	},
	{
		Metric: &names.GPUThrottleActive, From: []ID{ThrottleReasons, ClockEventsCount, ClockEventsTotal}, Keys: []string{names.GPUThrottleReason},
		Rule: "The bits of the mask; without the mask 1 where the count in the exporter's window is above 0, and without that where the total rose since the page before.",
	},
	{
		Metric: &names.GPUHealthStatus, From: []ID{HealthStatus}, Keys: []string{names.GPUHealthWatch, names.GPUHealthState},
		Rule: "1 for the state that a watch is in (pass, warn, fail: 0, 10, 20 on the page), 0 for the other two.",
	},
	{
		Metric: &names.GPUXIDErrors, From: []ID{XIDTotal, XIDLast}, Keys: []string{names.GPUXIDCode, names.GPUXIDDerived},
		Rule: "The exporter's counts where it has them. Without them changes of the last code, marked gpu.xid.derived=true: a lower bound, since the same code twice in a row cannot be seen, and the first code seen does not count.",
	},
}
