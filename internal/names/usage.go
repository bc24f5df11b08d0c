// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package names

// Log records of gpu_cost, which gpu_store keeps apart from events: a record is a row of
// the ledger in one UTC hour.
const (
	UsageHour = "gpu.usage.hour" // of an hour that is closed; a higher revision replaces it
	UsageOpen = "gpu.usage.open" // of an hour that is still running, as it is now
)

// Attributes of these records, beside those of the metrics of cost. Times are
// milliseconds of a whole GPU, energy is in millijoules, carbon dioxide in micrograms.
const (
	GPUUsageRevision         = "gpu.usage.revision"
	GPUUsageTime             = "gpu.usage.time_ms"
	GPUUsageUsed             = "gpu.usage.used_ms"
	GPUUsageIdle             = "gpu.usage.idle_ms"
	GPUUsageUnmeasured       = "gpu.usage.unmeasured_ms"
	GPUUsageUnplaced         = "gpu.usage.unplaced_ms"
	GPUUsageEnergyBoard      = "gpu.usage.energy_mj.board"
	GPUUsageEnergyShare      = "gpu.usage.energy_mj.share"
	GPUUsageEnergyIntegrated = "gpu.usage.energy_mj.integrated"
	GPUUsageCarbon           = "gpu.usage.carbon_ug"
	GPUUsageContested        = "gpu.usage.contested"
	GPUUsageBoardMetered     = "gpu.usage.board_metered"
	GPUUsageEstimated        = "gpu.usage.estimated"
	GPUUsageMarginal         = "gpu.usage.carbon_marginal"
	GPUNodeLabels            = "gpu.node.labels" // k=v,k=v: what prices depend on
	GPUPriceNano             = "gpu.price.nano"  // billionths of the currency for a GPU hour
	GPUPricePer              = "gpu.price.per"   // to be divided by this
	GPUPriceKind             = "gpu.price.kind"  // list or contracted
)

// UsageRecord reports whether an event name is that of a row of the ledger, which is no
// event.
func UsageRecord(event string) bool { return event == UsageHour || event == UsageOpen }
