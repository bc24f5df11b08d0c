// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package names

// Metrics of what the Kubernetes scheduler has to give and what waits for it, from gpu_scheduling. Devices are those of one resource and model.
var (
	NodeDevices             = Metric{"gpu.node.devices", "{device}", UpDownCounter, "Devices of the node by state: allocatable, requested by pods, free, and stranded, which is free and of no use now."}
	SchedulingStranded      = Metric{"gpu.scheduling.stranded", "{device}", UpDownCounter, "Free devices that no pod can get now, by the first reason that applies."}
	SchedulingFit           = Metric{"gpu.scheduling.fit", "{request}", UpDownCounter, "Requests of that many devices that would find a place now."}
	SchedulingFragmentation = Metric{"gpu.scheduling.fragmentation", "1", Gauge, "Fraction of the free devices that requests of that many devices cannot use; absent where no device is free."}
	SchedulingPendingPods   = Metric{"gpu.scheduling.pending.pods", "{pod}", UpDownCounter, "Pods that wait for a node."}
	SchedulingPending       = Metric{"gpu.scheduling.pending.devices", "{device}", UpDownCounter, "Devices that they ask for."}
	SchedulingPendingAge    = Metric{"gpu.scheduling.pending.age.max", "s", Gauge, "Time since the creation of the pod that waits for longest."}
	SchedulingSchedule      = Metric{"gpu.scheduling.schedule.duration", "s", Histogram, "Time from the creation of a pod until a node was found for it."}
	SchedulingStart         = Metric{"gpu.scheduling.start.duration", "s", Histogram, "Time from then until its containers ran."}
)

// How soon the devices of a pod are used, from gpu_summary.
var (
	SchedulingFirstUse  = Metric{"gpu.scheduling.first_use.duration", "s", Histogram, "Time from the start of a pod's containers to the first point with utilization."}
	SchedulingNeverUsed = Metric{"gpu.scheduling.never_used", "{pod}", Counter, "Pods that ended before any of their devices was used."}
)

// Whether pages of schedulers are read, from config/scheduler.yaml.
var (
	SchedulerUp = Metric{"gpu.scheduler.up", "1", UpDownCounter, "1 while the page of the scheduler is read, 0 while it is not."}
)

// Facts about the jobs of Slurm that hold devices, from slurm_allocation.
var (
	SlurmJobInfo = Metric{"slurm.job.info", "1", UpDownCounter, "Always 1: what is known of the job beside its identity."}
)

// Attributes of scheduling.
const (
	GPUNodeDeviceState = "gpu.node.device.state" // allocatable, requested, free or stranded
	GPUStrandedReason  = "gpu.stranded.reason"   // cordoned, not_ready, tainted, cpu or memory
	GPURequestSize     = "gpu.request.size"      // 1, 2, 4, 8, or expected: as pods asked of late
	GPUQueueName       = "gpu.queue.name"
	GPUPendingReason   = "gpu.pending.reason"
	GPUSchedulerName   = "gpu.scheduler.name" // kube-scheduler, kueue, volcano, kai or koordinator
)

// Attributes of Slurm. slurm.job.id is the raw number, of an array's task too.
const (
	SlurmClusterName  = "slurm.cluster.name"
	SlurmJobID        = "slurm.job.id" // of a process: from its cgroup
	SlurmJobName      = "slurm.job.name"
	SlurmJobUser      = "slurm.job.user"
	SlurmJobAccount   = "slurm.job.account"
	SlurmJobQOS       = "slurm.job.qos"
	SlurmPartition    = "slurm.partition"
	SlurmRestartCount = "slurm.restart_count"
	SlurmArrayJobID   = "slurm.array.job_id"
	SlurmArrayTaskID  = "slurm.array.task_id"
	SlurmSLUID        = "slurm.sluid"
	ServiceNamespace  = "service.namespace" // of a service on Slurm: the account
	// GPUAllocationNested is true where slurmd runs in a pod: the pod owns the device too.
	GPUAllocationNested = "gpu.allocation.nested"
)

// Values of gpu.attribution.source and gpu.sharing on Slurm. Sources of Slurm begin with
// SourceSlurm.
const (
	SourceSlurm        = "slurm_"
	SourceSlurmJobMap  = "slurm_job_map"
	SourceLabels       = "exporter_labels"
	SharingSlurmShared = "slurm_shared" // shards or MPS: by how many jobs, and not how much of it each has
)
