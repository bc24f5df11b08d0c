package names

// Attributes of the official semantic conventions.
const (
	HwID             = "hw.id"
	HwType           = "hw.type"
	HwTypeGPU        = "gpu"
	HwVendor         = "hw.vendor"
	HwVendorNVIDIA   = "NVIDIA"
	HwModel          = "hw.model"
	HwParent         = "hw.parent"
	HwDriverVersion  = "hw.driver_version"
	HwSerialNumber   = "hw.serial_number"
	HwFirmware       = "hw.firmware_version"
	HwVendorAMD      = "AMD"
	HwVendorIntel    = "Intel"
	HwLimitType      = "hw.limit_type"
	HwGPUTask        = "hw.gpu.task"
	HwSensorLocation = "hw.sensor_location"
	HostName         = "host.name"
	ServerAddress    = "server.address"
	ServerPort       = "server.port"
	ErrorType        = "error.type"
	NetworkDirection = "network.io.direction"
	ServiceName      = "service.name"
	K8sClusterName   = "k8s.cluster.name"
	K8sNodeName      = "k8s.node.name"
	K8sNamespaceName = "k8s.namespace.name"
	K8sPodName       = "k8s.pod.name"
	K8sPodUID        = "k8s.pod.uid"
	K8sPodStartTime  = "k8s.pod.start_time" // RFC 3339
	K8sContainerName = "k8s.container.name"
	K8sResourceName  = "k8s.resource.name"
	HostType         = "host.type"
	ProcessPID       = "process.pid"
	ProcessName      = "process.executable.name"
	ContainerID      = "container.id"
)

// Attributes of our own namespace.
const (
	GPUIndex         = "gpu.index"
	GPUMinor         = "gpu.minor"         // of /dev/nvidia<N>
	GPUFan           = "gpu.fan"           // number of a fan
	GPUProcessType   = "gpu.process.type"  // compute, graphics or mps
	GPUProcessTask   = "gpu.process.task"  // sm, memory, encoder or decoder
	GPUProcessOwner  = "gpu.process.owner" // other: of no owner that is named, or over the limit; unknown: not in /proc
	SystemdUnit      = "systemd.unit"      // likewise
	GPUPCIAddress    = "gpu.pci.address"
	GPUMIGProfile    = "gpu.mig.profile"
	GPUMIGInstanceID = "gpu.mig.instance_id"
	GPUMIGUUID       = "gpu.mig.uuid"
	// GPUPartitionID is the number of an AMD partition or an Intel tile on its board, and
	// GPUPartitionProfile the mode that the board is divided by: cpx_nps4.
	GPUPartitionID      = "gpu.partition.id"
	GPUPartitionProfile = "gpu.partition.profile"
	GPUPipe             = "gpu.pipe"
	GPUClockDomain      = "gpu.clock.domain"
	GPUPowerLimitKind   = "gpu.power.limit.kind"
	GPUThrottleReason   = "gpu.throttle.reason"
	GPUIOLink           = "gpu.io.link"
	// GPULinkIndex is the number of a port, and GPULinkKind internal (to another GPU of the
	// node) or external.
	GPULinkIndex = "gpu.link.index"
	GPULinkKind  = "gpu.link.kind"
	// GPUECCBlock is the block of the GPU that an ECC error is of: umc, sdma, gfx.
	GPUECCBlock = "gpu.ecc.block"
	// GPURASSeverity is fatal, non_fatal_uncorrected or non_fatal_corrected.
	GPURASSeverity   = "gpu.ras.severity"
	GPUPCIeErrorType = "gpu.pcie.error.type"
	GPUNVLinkError   = "gpu.nvlink.error.type"
	GPUXIDCode       = "gpu.xid.code"
	GPUXIDDerived    = "gpu.xid.derived"
	GPUSpareRows     = "gpu.memory.spare_rows"
	GPUFabricState   = "gpu.fabric.state"
	GPUNVLinkState   = "gpu.nvlink.state"
	GPUNVLinkLaneID  = "gpu.nvlink.lane" // number of a lane
	GPUHealthWatch   = "gpu.health.watch"
	GPUHealthState   = "gpu.health.state"
	GPUNodeBootID    = "gpu.node.boot_id"
	GPUHealthCleared = "gpu.health.cleared"
	GPUPodState      = "gpu.pod.state"
	GPUDeviceState   = "gpu.device.state"
	GPUDeviceIDs     = "gpu.device.ids"   // hw.id of a pod's devices, at most 16
	GPUDeviceCount   = "gpu.device_count" // all of them
	GPUValueScope    = "gpu.value.scope"
	GPUEventID       = "gpu.event.id"
	GPUEventKey      = "gpu.event.key"
	GPUEventState    = "gpu.event.state"

	GPUAttributionSource = "gpu.attribution.source"
	GPUSharing           = "gpu.sharing"
	// GPUAllocationInterval is no attribute: it stands in the metadata of the metric
	// gpu.allocation, which makes no series, and is the seconds between two snapshots.
	GPUAllocationInterval = "gpu.allocation.interval"
	GPUAllocationResolved = "gpu.allocation.resolved" // false: hw.id is node and kubelet's id
	// GPUAllocationShare is which part of its board a scheduler that shares boards granted,
	// by memory, and GPUAllocationShareCores by compute, where it limits that: 0..1.
	GPUAllocationShare      = "gpu.allocation.share"
	GPUAllocationShareCores = "gpu.allocation.share.cores"
)

// Attributes of cost.
const (
	CloudRegion     = "cloud.region"
	GPUTenant       = "gpu.tenant"
	GPUCostCurrency = "gpu.cost.currency" // ISO 4217
	GPUEnergyBasis  = "gpu.energy.basis"
	// GPUCapacityState is what a part of a board is: held, free, stranded, unavailable or
	// unknown.
	GPUCapacityState = "gpu.capacity.state"
	GPUCapacityType  = "gpu.capacity.type" // on_demand, spot or reserved
	GPUNodePool      = "gpu.node.pool"
	GPUBudgetName    = "gpu.budget.name"
	GPUBudgetKind    = "gpu.budget.kind" // cost or hours
	// GPUBudgetPeriod is day, week or month, and GPUBudgetTimezone where these begin at midnight.
	GPUBudgetPeriod   = "gpu.budget.period"
	GPUBudgetTimezone = "gpu.budget.timezone" // as in the IANA database
	// NodeLabelPrefix begins the attributes that are labels of a node.
	NodeLabelPrefix = "node.label."
)

// Values of gpu.capacity.type and gpu.budget.kind.
const (
	CapacityOnDemand = "on_demand"
	CapacitySpot     = "spot"
	CapacityReserved = "reserved"
	BudgetCost       = "cost"
	BudgetHours      = "hours"
)

// Values of gpu.attribution.source and gpu.sharing.
const (
	SourcePodResources = "pod_resources"
	SourceDRA          = "dra"
	SourceAnnotation   = "annotation" // of the pod, by a scheduler that shares boards
	SharingNone        = "none"
	SharingTimeSlicing = "time_slicing"
	SharingMPS         = "mps"
	SharingHAMi        = "hami"
	SharingVolcano     = "volcano"
	SharingKoordinator = "koordinator"
	SharingKAI         = "kai"
	ValueScopeDevice   = "device" // of gpu.value.scope: the whole device's value, not the replica's own
)

// Labels of dcgm-exporter that name the owner of a device, in the one spelling
// in which the dcgm receiver forwards them to gpu_pod: as resource attributes.
const (
	ExporterPod       = "pod"
	ExporterNamespace = "namespace"
	ExporterContainer = "container"
	ExporterPodUID    = "pod_uid"
	ExporterPodLabel  = "pod_label_" // prefix
	ExporterVGPU      = "vgpu"       // the replica's number
	// DCGMPrefix begins the metrics of DCGM's families that have no name of their own
	// here.
	DCGMPrefix = "dcgm."
	// ExporterHolders lists the owners of a shared device, each a map of the
	// labels above, instead of them. Where the exporter measured the usage of each
	// owner, the map has GPUMemoryUsage (int, bytes) and GPUUtilization
	// (double, 0 to 1) too, under the metrics' names.
	ExporterHolders = "dcgm.holders"
	// DeviceHolders is the same list from the receivers of the other vendors.
	DeviceHolders = "gpu.exporter.holders"
	// Prefixes of the metrics of the other vendors' families without a name of their own.
	AMDPrefix   = "amd."
	GaudiPrefix = "habanalabs."
	IntelPrefix = "xpum."
)
