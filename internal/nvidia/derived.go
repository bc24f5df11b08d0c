// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Derived are all metrics of a device that are not in Series.
var Derived = []devicetable.Derived{
	{
		Metric: &names.GPUMemoryUsage, From: []devicetable.ID{FBUsed},
		Rule: "The field; for a GPU in MIG mode without a row of its own the sum over its instances, if all of them report it.",
	},
	{
		Metric: &names.GPUMemoryLimit, From: []devicetable.ID{FBTotal, FBUsed, FBFree, FBReserved},
		Rule: "FB_TOTAL; without it FB_USED + FB_FREE + FB_RESERVED; where FB_RESERVED is absent (drivers before 510, which count it as used) FB_USED + FB_FREE. Sums over MIG instances as for the usage.",
	},
	{
		Metric: &names.GPUMemoryUtilization, From: []devicetable.ID{FBTotal, FBUsed, FBFree, FBReserved},
		Rule: "Usage divided by limit, where both are known.",
	},
	{
		Metric: &names.GPUThrottleActive, From: []devicetable.ID{ThrottleReasons, ClockEventsCount, ClockEventsTotal}, Keys: []string{names.GPUThrottleReason},
		Rule: "The bits of the mask; without the mask 1 where the count in the exporter's window is above 0, and without that where the total rose since the page before.",
	},
	{
		Metric: &names.GPUHealthStatus, From: []devicetable.ID{HealthStatus}, Keys: []string{names.GPUHealthWatch, names.GPUHealthState},
		Rule: "1 for the state that a watch is in (pass, warn, fail: 0, 10, 20 on the page), 0 for the other two.",
	},
	{
		Metric: &names.GPUFabricStatus, From: []devicetable.ID{FabricHealth}, Keys: []string{names.GPUFabricState},
		Rule: "1 for the state that the fabric is in (healthy, unhealthy, limited: 1, 2, 3 on the page), 0 for the other two.",
	},
	{
		Metric: &names.GPUNVLinkPeers, From: []devicetable.ID{P2PStatus}, Keys: []string{names.GPUNVLinkState},
		Rule: "The rows, one for each other GPU: up for those with 0 on the page, down for those with another code. It depends on the driver how many links of a path have to fail until it is down.",
	},
	{
		Metric: &names.GPUXIDErrors, From: []devicetable.ID{XIDTotal, XIDLast}, Keys: []string{names.GPUXIDCode, names.GPUXIDDerived},
		Rule: "The exporter's counts where it has them. Without them changes of the last code, marked gpu.xid.derived=true: a lower bound, since the same code twice in a row cannot be seen, and the first code seen does not count.",
	},
}
