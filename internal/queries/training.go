// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package queries // import "github.com/otelcol-gpu/otelcol-gpu/internal/queries"

import "github.com/otelcol-gpu/otelcol-gpu/internal/names"

// Metrics that training jobs send, and those of gpu_training.
var (
	TrainingStep           = names.TrainingStep.Prometheus()
	TrainingStepDuration   = names.TrainingStepDuration.Prometheus()
	TrainingLoss           = names.TrainingLoss.Prometheus()
	TrainingGradientNorm   = names.TrainingGradientNorm.Prometheus()
	TrainingTime           = names.TrainingTime.Prometheus()
	TrainingCheckpointStep = names.TrainingCheckpointStep.Prometheus()
	TrainingMFU            = names.GPUTrainingMFU.Prometheus()
	TrainingThroughput     = names.GPUTrainingThroughput.Prometheus()
	TrainingDeviceTokens   = names.GPUTrainingDeviceThroughput.Prometheus()
	TrainingGoodput        = names.GPUTrainingGoodput.Prometheus()
	TrainingRestarts       = names.GPUTrainingRestarts.Prometheus()
	TrainingLostSteps      = names.GPUTrainingLostSteps.Prometheus()
	TrainingDataWait       = names.GPUTrainingDataWaitRatio.Prometheus()
)

// Labels of these.
const (
	TrainingRun       = "training_run_id"
	TrainingPhase     = "training_phase"
	TrainingBasis     = "gpu_training_basis"
	TrainingWindow    = "gpu_training_window"
	TrainingOperation = "training_checkpoint_operation"
	TrainingBlocking  = "training_checkpoint_blocking"
)

// OfRuns are the labels that name a training run: of a service of Kubernetes, or of a job of Slurm.
var OfRuns = []string{Cluster, Namespace, Service, SlurmCluster, SlurmJob, TrainingRun}

// Metrics of collective operations.
var (
	NCCLDuration = names.NCCLOperationDuration.Prometheus()
	NCCLBytes    = names.NCCLOperationBytes.Prometheus()
	NCCLBusBytes = names.NCCLOperationBusBytes.Prometheus()
	NCCLDropped  = names.NCCLRecordsDropped.Prometheus()
	NCCLAge      = names.NCCLDataAge.Prometheus()
	NCCLWait     = names.NCCLWaitRatio.Prometheus()
	NCCLLate     = names.NCCLRankLate.Prometheus()
	NCCLLateness = names.NCCLRankLateness.Prometheus()
	NCCLRanks    = names.NCCLRanks.Prometheus()
	NCCLStalled  = names.NCCLStalled.Prometheus()
)

// Labels of these.
const (
	NCCLOperation    = "nccl_operation"
	NCCLCommunicator = "nccl_communicator"
	NCCLRank         = "nccl_rank"
	NCCLHost         = "nccl_host"
	NCCLRankState    = "nccl_rank_state"
	NCCLRecordKind   = "nccl_record_kind"
)

// OfCommunicators are the labels that name a communicator: of a service of Kubernetes, or of a job
// of Slurm.
var OfCommunicators = []string{Cluster, Namespace, Service, SlurmCluster, SlurmJob, NCCLCommunicator}
