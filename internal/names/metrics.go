package names

// Metrics of a device.
var (
	GPUUtilization         = Metric{"hw.gpu.utilization", "1", Gauge, "Fraction of time the GPU's engine was busy, by task."}
	GPUMemoryUsage         = Metric{"hw.gpu.memory.usage", "By", UpDownCounter, "GPU memory in use."}
	GPUMemoryLimit         = Metric{"hw.gpu.memory.limit", "By", UpDownCounter, "Size of the GPU memory."}
	GPUMemoryUtilization   = Metric{"hw.gpu.memory.utilization", "1", Gauge, "Fraction of the GPU memory in use."}
	GPUMemoryReserved      = Metric{"gpu.memory.reserved", "By", UpDownCounter, "GPU memory reserved by driver and firmware."}
	GPUBAR1Limit           = Metric{"gpu.bar1.limit", "By", UpDownCounter, "Size of the GPU's BAR1, through which PCIe reaches its memory."}
	GPUBAR1Usage           = Metric{"gpu.bar1.usage", "By", UpDownCounter, "Part of the GPU's BAR1 in use."}
	GPUBAR1Free            = Metric{"gpu.bar1.free", "By", UpDownCounter, "Part of the GPU's BAR1 that is free."}
	GPUMemoryController    = Metric{"gpu.memory_controller.utilization", "1", Gauge, "Fraction of time the memory controller was busy."}
	HwPower                = Metric{"hw.power", "W", Gauge, "Power drawn by the board."}
	GPUPowerLimit          = Metric{"gpu.power.limit", "W", Gauge, "Power limit of the board."}
	HwEnergy               = Metric{"hw.energy", "J", Counter, "Energy consumed by the board since the driver was loaded."}
	HwTemperature          = Metric{"hw.temperature", "Cel", Gauge, "Temperature by sensor."}
	GPUClockFrequency      = Metric{"gpu.clock.frequency", "Hz", Gauge, "Clock frequency by domain."}
	GPUClockMax            = Metric{"gpu.clock.frequency.max", "Hz", Gauge, "Highest clock frequency of the board by domain."}
	GPUClockApplication    = Metric{"gpu.clock.frequency.application", "Hz", Gauge, "Clock frequency that is set for applications by domain."}
	GPUThrottleActive      = Metric{"gpu.throttle.active", "1", UpDownCounter, "1 while a reason holds the clocks down, else 0."}
	GPUThrottleDuration    = Metric{"gpu.throttle.duration", "s", Counter, "Time for which a reason held the clocks down."}
	GPUEngineActive        = Metric{"gpu.engine.active", "1", Gauge, "Fraction of time the graphics or compute engine was active."}
	GPUSMActive            = Metric{"gpu.sm.active", "1", Gauge, "Fraction of time at least one warp was active on an SM, averaged over SMs."}
	GPUSMOccupancy         = Metric{"gpu.sm.occupancy", "1", Gauge, "Resident warps as a fraction of the maximum."}
	GPUPipeActive          = Metric{"gpu.pipe.active", "1", Gauge, "Fraction of cycles a pipe was active."}
	GPUDRAMActive          = Metric{"gpu.dram.active", "1", Gauge, "Fraction of cycles the memory interface was sending or receiving."}
	GPUPCIeThroughput      = Metric{"gpu.pcie.throughput", "By/s", Gauge, "PCIe traffic, seen from the GPU."}
	GPUNVLinkThroughput    = Metric{"gpu.nvlink.throughput", "By/s", Gauge, "NVLink traffic, seen from the GPU."}
	GPUNVLinkLane          = Metric{"gpu.nvlink.lane.throughput", "By/s", Gauge, "NVLink traffic of a lane, in both directions."}
	GPUC2CBandwidthMax     = Metric{"gpu.c2c.bandwidth.max", "By/s", Gauge, "Highest bandwidth of a chip-to-chip link."}
	GPUPCIeReplays         = Metric{"gpu.pcie.replays", "{replay}", Counter, "PCIe replays."}
	GPUIO                  = Metric{"hw.gpu.io", "By", Counter, "Bytes received and transmitted by the GPU."}
	GPUNVLinkErrors        = Metric{"gpu.nvlink.errors", "{error}", Counter, "NVLink errors by type."}
	GPUNVLinkPeers         = Metric{"gpu.nvlink.peers", "{gpu}", UpDownCounter, "Other GPUs of the node, by whether the GPU reaches them over NVLink."}
	HwErrors               = Metric{"hw.errors", "{error}", Counter, "ECC errors since the driver was loaded."}
	GPUECCLifetime         = Metric{"gpu.ecc.lifetime_errors", "{error}", Counter, "ECC errors over the life of the board."}
	GPURetiredPages        = Metric{"gpu.memory.retired_pages", "{page}", Counter, "Memory pages retired because of ECC errors."}
	GPURetiredPending      = Metric{"gpu.memory.retired_pages.pending", "1", UpDownCounter, "1 while pages wait for a reboot to be retired, else 0."}
	GPURemappedRows        = Metric{"gpu.memory.remapped_rows", "{row}", Counter, "Memory rows remapped because of ECC errors."}
	GPURowRemapFailure     = Metric{"gpu.memory.row_remap.failure", "1", UpDownCounter, "1 if remapping a row failed, else 0."}
	GPURowRemapPending     = Metric{"gpu.memory.row_remap.pending", "1", UpDownCounter, "1 while a memory row waits for a reset of the GPU to be remapped, else 0."}
	GPURemapBanks          = Metric{"gpu.memory.remap_banks", "{bank}", UpDownCounter, "Memory banks by the spare rows that are left for remapping."}
	GPUSRAMExceeded        = Metric{"gpu.memory.sram.threshold_exceeded", "1", UpDownCounter, "1 if uncorrectable SRAM errors are above the threshold for replacing the board, else 0."}
	GPURecoveryAction      = Metric{"gpu.recovery.action", "{code}", Gauge, "Recovery that the driver asks for: 0 none, 1 reset the GPU, 2 reboot the node, 3 drain peer-to-peer traffic, 4 drain and reset, other codes as in NVML."}
	GPUFabricStatus        = Metric{"gpu.fabric.status", "1", UpDownCounter, "1 for the state that the NVLink fabric of the GPU is in, 0 for the others."}
	GPUPCIeWidth           = Metric{"gpu.pcie.link.width", "{lane}", Gauge, "PCIe lanes in use; an idle link may have fewer than under load."}
	GPUPCIeWidthMax        = Metric{"gpu.pcie.link.width.max", "{lane}", Gauge, "PCIe lanes that GPU and slot can use."}
	GPUPCIeGeneration      = Metric{"gpu.pcie.link.generation", "{generation}", Gauge, "PCIe generation in use; that of an idle link may be lower than under load."}
	GPUPCIeGenerationMax   = Metric{"gpu.pcie.link.generation.max", "{generation}", Gauge, "PCIe generation that GPU and slot can use."}
	GPUXIDLast             = Metric{"gpu.xid.last", "{code}", Gauge, "Code of the last XID; 0 is none seen."}
	GPUXIDErrors           = Metric{"gpu.xid.errors", "{error}", Counter, "XID errors by code."}
	GPUHealthStatus        = Metric{"gpu.health.status", "1", UpDownCounter, "1 for the state that a health watch is in, 0 for the others."}
	GPUECCErrors           = Metric{"gpu.ecc.errors", "{error}", Counter, "ECC errors since the driver was loaded, by the block of the GPU."}
	GPURASLast             = Metric{"gpu.ras.last", "{code}", Gauge, "Code of the newest error record of a severity."}
	GPUThrottleRatio       = Metric{"gpu.throttle.ratio", "1", Gauge, "Fraction of time for which a reason held the clocks down."}
	GPUPCIeErrors          = Metric{"gpu.pcie.errors", "{error}", Counter, "PCIe errors other than replays, by type."}
	GPUMemoryBandwidth     = Metric{"gpu.memory.bandwidth.utilization", "1", Gauge, "Memory traffic as a fraction of the most that is possible."}
	GPUMemoryIO            = Metric{"gpu.memory.io", "By", Counter, "Bytes read from the GPU memory (receive) and written to it (transmit)."}
	GPURetiredFailure      = Metric{"gpu.memory.retired_pages.failure", "1", UpDownCounter, "1 if retiring a memory page failed, else 0."}
	GPURemappedRowsPending = Metric{"gpu.memory.remapped_rows.pending", "1", UpDownCounter, "1 while memory rows wait for a reset of the GPU to be replaced, else 0."}
	GPULinkUp              = Metric{"gpu.link.up", "1", UpDownCounter, "1 while a port of the GPU has a link, else 0."}
	GPUDeviceErrors        = Metric{"gpu.device.errors", "{error}", Counter, "Errors of programs and drivers on the device, by type."}
	GPUDeviceResets        = Metric{"gpu.device.resets", "{reset}", Counter, "Resets of the device."}
	HwTemperatureLimit     = Metric{"hw.temperature.limit", "Cel", Gauge, "Temperature at which the device acts, by the kind of limit and by sensor."}
	GPUVGPULicensed        = Metric{"gpu.vgpu.licensed", "1", UpDownCounter, "1 while the vGPU is licensed, else 0."}
	GPUVGPUMemoryUsage     = Metric{"gpu.vgpu.memory.usage", "By", UpDownCounter, "GPU memory in use by the vGPU."}
	GPUTemperatureMargin   = Metric{"gpu.temperature.margin", "Cel", Gauge, "Degrees left until the GPU is too warm and the driver lowers its clocks."}
	HwFanSpeedRatio        = Metric{"hw.fan.speed_ratio", "1", Gauge, "Speed of a fan as a fraction of its maximum."}
	GPUDeviceBlank         = Metric{"gpu.device.blank", "1", UpDownCounter, "1 while the exporter has the device on its page and none of its values can be read; 0 once afterwards."}
	GPUDeviceSuspended     = Metric{"gpu.device.suspended", "1", UpDownCounter, "1 while runtime power management has the GPU suspended, so that nothing is read of it, else 0."}
)

// Metrics of the processes on a device, from the nvml receiver.
var (
	GPUProcessMemoryUsage = Metric{"gpu.process.memory.usage", "By", UpDownCounter, "GPU memory in use by the processes of an owner, or by one process."}
	GPUProcessUtilization = Metric{"gpu.process.utilization", "1", Gauge, "Fraction of time the processes of an owner, or one process, kept an engine of the GPU busy."}
)

// Metrics about the driver of a node, from the nvml receiver.
var (
	GPUDriverReleased = Metric{"gpu.driver.released", "1", UpDownCounter, "1 while nothing is read of the node's GPUs so that the driver is free for a change; 0 once afterwards."}
)

// Metrics about the health of a board or a node, from gpu_events.
var (
	HwStatus          = Metric{"hw.status", "1", UpDownCounter, "1 for the state that the board is in, 0 for the others; absent while it is not known."}
	GPUHealthReason   = Metric{"gpu.health.reason", "1", UpDownCounter, "1 while a reason against the board is active."}
	GPUHealthCoverage = Metric{"gpu.health.coverage", "1", Gauge, "Reasons with fresh inputs as a fraction of those that fit the board."}
	GPUHealthScore    = Metric{"gpu.health.score", "1", Gauge, "Least weight of the active reasons; 1 without any, 0 for a failed board."}
	GPUStraggler      = Metric{"gpu.straggler", "1", UpDownCounter, "1 while the clock of the board is low among its peers: whole boards of its service, model and power limit."}
	GPUNodeStatus     = Metric{"gpu.node.status", "1", UpDownCounter, "1 for the state of the node's worst board, 0 for the others; absent while one is not known and none is failed."}
)

// Metrics about an exporter, from the receivers of exporters' pages.
var (
	ExporterUp             = Metric{"gpu.exporter.up", "1", UpDownCounter, "1 if the last scrape of the exporter succeeded, else 0."}
	ExporterFrozen         = Metric{"gpu.exporter.frozen", "1", UpDownCounter, "1 while the exporter answers with values that have stood still, 0 while they move; absent while neither is known."}
	ExporterUnrecognized   = Metric{"gpu.exporter.unrecognized", "1", UpDownCounter, "1 while no field of the exporter's page is known to be the utilization, memory or power of a device, else 0; absent for a page without devices."}
	ExporterScrapeDuration = Metric{"gpu.exporter.scrape.duration", "s", Gauge, "Duration of the last scrape."}
	ExporterScrapeSamples  = Metric{"gpu.exporter.scrape.samples", "{sample}", Gauge, "Samples on the exporter's last page."}
)

// Metrics about the owners of devices, and about the node, from gpu_allocation.
var (
	GPUAllocation           = Metric{"gpu.allocation", "1", UpDownCounter, "Share of the device that the container holds; 0 for a free device."}
	GPUNodeSchedulable      = Metric{"gpu.node.schedulable", "1", UpDownCounter, "1 while the node takes new pods, 0 while it is cordoned."}
	GPUNodeMIGReconfiguring = Metric{"gpu.node.mig.reconfiguring", "1", UpDownCounter, "1 while the MIG layout of the node's GPUs is being changed, else 0."}
	GPUNodeInfo             = Metric{"gpu.node.info", "1", UpDownCounter, "Always 1: boot, driver, machine type, region, capacity type and pool of the node. A new boot is another series."}
)

// Metrics of a service and its pods, from gpu_summary.
var (
	ServiceUtilization    = Metric{"gpu.service.utilization", "1", Gauge, "Mean GPU utilization over the service's pods."}
	ServiceSMActive       = Metric{"gpu.service.sm.active", "1", Gauge, "Mean SM activity over the service's pods."}
	ServiceDRAMActive     = Metric{"gpu.service.dram.active", "1", Gauge, "Mean memory interface activity over the service's pods."}
	ServicePipeActive     = Metric{"gpu.service.pipe.active", "1", Gauge, "Mean pipe activity over the service's pods."}
	ServicePodMemoryUsage = Metric{"gpu.service.pod.memory.usage", "By", Gauge, "Mean GPU memory in use per pod."}
	ServicePodMemoryLimit = Metric{"gpu.service.pod.memory.limit", "By", Gauge, "Mean GPU memory size per pod."}
	ServicePodPower       = Metric{"gpu.service.pod.power", "W", Gauge, "Mean power per pod."}
	ServiceMemoryUsage    = Metric{"gpu.service.memory.usage", "By", UpDownCounter, "GPU memory in use by the service."}
	ServiceMemoryLimit    = Metric{"gpu.service.memory.limit", "By", UpDownCounter, "GPU memory held by the service."}
	ServicePower          = Metric{"gpu.service.power", "W", Gauge, "Power drawn by the service's devices."}
	ServiceUtilizationMin = Metric{"gpu.service.utilization.min", "1", Gauge, "Utilization of the service's least busy pod."}
	ServiceUtilizationMax = Metric{"gpu.service.utilization.max", "1", Gauge, "Utilization of the service's busiest pod."}
	ServiceMeanDevices    = Metric{"gpu.service.utilization.devices", "{device}", UpDownCounter, "Devices with utilization, of which gpu.service.utilization is the mean."}
	ServicePods           = Metric{"gpu.service.pods", "{pod}", UpDownCounter, "Pods of the service by state."}
	ServicePodsPending    = Metric{"gpu.service.pods.pending", "{pod}", UpDownCounter, "Pods of the service that no node has accepted."}
	ServiceDevices        = Metric{"gpu.service.devices", "{device}", UpDownCounter, "Devices held by the service by state."}
	ServiceIdleDevices    = Metric{"gpu.service.idle_devices", "{device}", UpDownCounter, "Devices held by settled pods and idle for long."}
	ServiceMissingRatio   = Metric{"gpu.service.missing_ratio", "1", Gauge, "Missing pods as a fraction of settled pods."}
	ServicePartial        = Metric{"gpu.service.partial", "1", UpDownCounter, "1 while too many settled pods are missing, else 0."}
	ServiceDataAge        = Metric{"gpu.service.data.age", "s", Gauge, "Age of the oldest point in the service's averages."}
	PodState              = Metric{"gpu.pod.state", "1", UpDownCounter, "1 for the state that the pod is in, 0 once for the state it left."}
)

// Settings of gpu_summary that its figures follow, one series for each cluster.
var (
	SummaryWarmup           = Metric{"gpu.summary.warmup", "s", Gauge, "Age below which a pod is warming and never missing."}
	SummaryPartialThreshold = Metric{"gpu.summary.partial_threshold", "1", Gauge, "Missing ratio above which a service is partial."}
	SummaryIdleThreshold    = Metric{"gpu.summary.idle_threshold", "1", Gauge, "Utilization below which a device is idle once gpu.summary.idle_for has passed."}
	SummaryIdleFor          = Metric{"gpu.summary.idle_for", "s", Gauge, "Time for which a device is below gpu.summary.idle_threshold until it counts as idle."}
)

// Metrics of the time, cost and energy of owners, from gpu_cost. A counter is absent where what it counts is not known.
var (
	UsageHeld       = Metric{"gpu.usage.held", "s", Counter, "Time for which GPUs were held, in seconds of a whole GPU."}
	UsageUsed       = Metric{"gpu.usage.used", "s", Counter, "Held time multiplied by the utilization."}
	UsageIdle       = Metric{"gpu.usage.idle", "s", Counter, "Held time in which the utilization was below the threshold for long."}
	UsageUnmeasured = Metric{"gpu.usage.unmeasured", "s", Counter, "Held time without a fresh utilization."}
	UsageUnplaced   = Metric{"gpu.usage.unplaced", "s", Counter, "Time for which devices were held of which the board is not known. No part of the held time."}
	UsageCost       = Metric{"gpu.usage.cost", "{currency}", Counter, "Cost of the held time."}
	UsageIdleCost   = Metric{"gpu.usage.idle.cost", "{currency}", Counter, "Cost of the idle time."}
	UsageEnergy     = Metric{"gpu.usage.energy", "J", Counter, "Energy of the boards that were held, split by share, by what it was computed from."}
	UsageCarbon     = Metric{"gpu.usage.carbon", "g", Counter, "Carbon dioxide of that energy, overhead of the data centre included."}
)

// Metrics of the time, cost and energy of boards by their state, from gpu_cost. The sum over the states is the physical fleet.
var (
	CapacityTime   = Metric{"gpu.capacity.time", "s", Counter, "Time of the boards, in seconds of a whole GPU, by state."}
	CapacityCost   = Metric{"gpu.capacity.cost", "{currency}", Counter, "Cost of that time."}
	CapacityEnergy = Metric{"gpu.capacity.energy", "J", Counter, "Energy of the boards, by state."}
)

// Prices and budgets, from gpu_cost.
var (
	GPUPrice        = Metric{"gpu.price", "{currency}/h", Gauge, "Price of a whole GPU that holds now; absent where it is not known."}
	BudgetUsed      = Metric{"gpu.budget.used", "1", Gauge, "Used part of a budget in the running period; above 1 once it is exceeded."}
	BudgetLimitCost = Metric{"gpu.budget.limit.cost", "{currency}", Gauge, "What a budget of money allows in a period."}
	BudgetLimitTime = Metric{"gpu.budget.limit.time", "s", Gauge, "What a budget of hours allows in a period, in seconds of a whole GPU."}
)
