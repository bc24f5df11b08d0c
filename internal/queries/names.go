// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package queries // import "github.com/otelcol-gpu/otelcol-gpu/internal/queries"

import "github.com/otelcol-gpu/otelcol-gpu/internal/names"

// Metrics of devices.
var (
	Utilization   = names.GPUUtilization.Prometheus()
	MemoryUsage   = names.GPUMemoryUsage.Prometheus()
	MemoryLimit   = names.GPUMemoryLimit.Prometheus()
	PipeActive    = names.GPUPipeActive.Prometheus()
	SMActive      = names.GPUSMActive.Prometheus()
	DRAMActive    = names.GPUDRAMActive.Prometheus()
	Power         = names.HwPower.Prometheus()
	PowerLimit    = names.GPUPowerLimit.Prometheus()
	Temperature   = names.HwTemperature.Prometheus()
	Throttle      = names.GPUThrottleActive.Prometheus()
	XIDLast       = names.GPUXIDLast.Prometheus()
	XIDErrors     = names.GPUXIDErrors.Prometheus()
	HwErrors      = names.HwErrors.Prometheus()
	Allocation    = names.GPUAllocation.Prometheus()
	ExporterUp    = names.ExporterUp.Prometheus()
	Frozen        = names.ExporterFrozen.Prometheus()
	Unrecognized  = names.ExporterUnrecognized.Prometheus()
	Schedulable   = names.GPUNodeSchedulable.Prometheus()
	Reconfiguring = names.GPUNodeMIGReconfiguring.Prometheus()
	Suspended     = names.GPUDeviceSuspended.Prometheus()
	Released      = names.GPUDriverReleased.Prometheus()
)

// Metrics of services and their pods.
var (
	ServiceUtilization    = names.ServiceUtilization.Prometheus()
	ServiceUtilizationMin = names.ServiceUtilizationMin.Prometheus()
	ServiceUtilizationMax = names.ServiceUtilizationMax.Prometheus()
	ServiceSM             = names.ServiceSMActive.Prometheus()
	ServiceDRAM           = names.ServiceDRAMActive.Prometheus()
	ServicePipe           = names.ServicePipeActive.Prometheus()
	ServicePodMemory      = names.ServicePodMemoryUsage.Prometheus()
	ServicePodLimit       = names.ServicePodMemoryLimit.Prometheus()
	ServicePodPower       = names.ServicePodPower.Prometheus()
	ServiceMemory         = names.ServiceMemoryUsage.Prometheus()
	ServiceLimit          = names.ServiceMemoryLimit.Prometheus()
	ServicePower          = names.ServicePower.Prometheus()
	ServicePods           = names.ServicePods.Prometheus()
	ServicePending        = names.ServicePodsPending.Prometheus()
	ServiceDevices        = names.ServiceDevices.Prometheus()
	ServiceIdle           = names.ServiceIdleDevices.Prometheus()
	ServiceMissingRatio   = names.ServiceMissingRatio.Prometheus()
	ServicePartial        = names.ServicePartial.Prometheus()
	ServiceDataAge        = names.ServiceDataAge.Prometheus()
	PodState              = names.PodState.Prometheus()
)

// Metrics of inference servers.
var (
	InferenceUp       = names.InferenceServerUp.Prometheus()
	InferenceRequests = names.InferenceRequests.Prometheus()
	InferenceFinished = names.InferenceRequestsFinished.Prometheus()
	InferenceTokens   = names.InferenceTokens.Prometheus()
	InferenceKVCache  = names.InferenceKVCacheUtilization.Prometheus()
	TimeToFirstToken  = names.GenAITimeToFirstToken.Prometheus()
	TimePerToken      = names.GenAITimePerOutputToken.Prometheus()
	InterTokenLatency = names.InferenceInterTokenLatency.Prometheus()
	RequestDuration   = names.GenAIRequestDuration.Prometheus()
)

// Settings of gpu_summary.
var (
	SummaryWarmup           = names.SummaryWarmup.Prometheus()
	SummaryPartialThreshold = names.SummaryPartialThreshold.Prometheus()
	SummaryIdleThreshold    = names.SummaryIdleThreshold.Prometheus()
	SummaryIdleFor          = names.SummaryIdleFor.Prometheus()
)

// Labels, as Prometheus has them for the attributes of internal/names.
const (
	Cluster   = "k8s_cluster_name"
	Namespace = "k8s_namespace_name"
	Service   = "service_name"
	Pod       = "k8s_pod_name"

	// On Slurm a service is in an account, and a pod is a job.
	SlurmCluster   = "slurm_cluster_name"
	Account        = "service_namespace"
	SlurmJob       = "slurm_job_id"
	SlurmUser      = "slurm_job_user"
	SlurmPartition = "slurm_partition"
	Nested         = "gpu_allocation_nested" // the pod in which Slurm runs owns the device too

	Container     = "k8s_container_name"
	Node          = "k8s_node_name"
	Host          = "host_name"
	Address       = "server_address"
	Port          = "server_port"
	Device        = "hw_id"
	Parent        = "hw_parent"
	Model         = "hw_model"
	Index         = "gpu_index"
	MIGProfile    = "gpu_mig_profile"
	MIGInstance   = "gpu_mig_instance_id"
	Partition     = "gpu_partition_id"
	PartitionMode = "gpu_partition_profile"
	Task          = "hw_gpu_task"
	Pipe          = "gpu_pipe"
	Sensor        = "hw_sensor_location"
	LimitKind     = "gpu_power_limit_kind"
	Reason        = "gpu_throttle_reason"
	XIDCode       = "gpu_xid_code"
	XIDDerived    = "gpu_xid_derived"
	ErrorType     = "error_type"
	Source        = "gpu_attribution_source"
	Sharing       = "gpu_sharing"
	Resolved      = "gpu_allocation_resolved"
	StateOfPod    = "gpu_pod_state"
	StateOfDevice = "gpu_device_state"
	Engine        = "inference_engine"
	Bounds        = "inference_bounds"
	TokenType     = "inference_token_type"
	RequestState  = "inference_request_state"
	Outcome       = "inference_request_outcome"
	CacheTier     = "inference_cache_tier"
)
