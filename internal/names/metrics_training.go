// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package names

// Metrics that a training job sends of itself over OTLP; those without a unit are plain numbers.
var (
	TrainingStepDuration       = Metric{"training.step.duration", "s", Histogram, "Time from the end of an optimizer step to the end of the next, by the wall clock, the device synchronised."}
	TrainingStep               = Metric{"training.step", "{step}", Gauge, "Number of the newest step of the run; it goes back after a restart from a checkpoint."}
	TrainingTokens             = Metric{"training.tokens", "{token}", Counter, "Tokens trained, without padding: those of the global batch, counted once a job."}
	TrainingSamples            = Metric{"training.samples", "{sample}", Counter, "Samples trained: those of the global batch, counted once a job."}
	TrainingStepsSkipped       = Metric{"training.steps.skipped", "{step}", Counter, "Steps that did not change the weights, by reason."}
	TrainingLoss               = Metric{"training.loss", "", Gauge, "Loss of the newest step, where it is finite."}
	TrainingGradientNorm       = Metric{"training.gradient.norm", "", Gauge, "Norm of the gradient of the newest step before clipping, where it is finite."}
	TrainingLearningRate       = Metric{"training.learning_rate", "", Gauge, "Learning rate of the newest step."}
	TrainingNonfinite          = Metric{"training.nonfinite", "{value}", Counter, "Values that were NaN or infinite, by which value it was."}
	TrainingDataWait           = Metric{"training.data.wait.duration", "s", Histogram, "Time that a step waited for its input."}
	TrainingCheckpointDuration = Metric{"training.checkpoint.duration", "s", Histogram, "Duration of saving or restoring a checkpoint, by whether the training waited for it."}
	TrainingCheckpointSize     = Metric{"training.checkpoint.size", "By", Gauge, "Size of the newest durable checkpoint."}
	TrainingCheckpointStep     = Metric{"training.checkpoint.step", "{step}", Gauge, "Step of the newest durable checkpoint."}
	TrainingTime               = Metric{"training.time", "s", Counter, "Time by phase: each moment in one phase, the sum is the age of the process."}
	TrainingModelParameters    = Metric{"training.model.parameters", "{parameter}", Gauge, "Active parameters that a token meets, without the input embedding."}
	TrainingModelLayers        = Metric{"training.model.layers", "{layer}", Gauge, "Layers with attention."}
	TrainingModelAttention     = Metric{"training.model.attention.dimension", "{element}", Gauge, "Attention heads times the sum of the widths of a query and a value."}
	TrainingModelSequence      = Metric{"training.model.sequence.length", "{token}", Gauge, "Tokens of a sequence."}
	TrainingFLOPsPerToken      = Metric{"training.flops_per_token", "{operation}", Gauge, "Floating-point operations of a token, forward and backward: the framework's own figure in place of the four of the model."}
)

// Metrics of a training run, from gpu_training. One is absent where what it needs is not known.
var (
	GPUTrainingMFU              = Metric{"gpu.training.mfu", "1", Gauge, "Model FLOPs utilization: operations of the trained tokens as a fraction of the peak of all devices of the run, by the time it is over."}
	GPUTrainingThroughput       = Metric{"gpu.training.throughput", "{token}/s", Gauge, "Tokens trained a second of the wall clock."}
	GPUTrainingDeviceThroughput = Metric{"gpu.training.device.throughput", "{token}/s", Gauge, "The same divided by the devices of the run."}
	GPUTrainingGoodput          = Metric{"gpu.training.goodput", "1", Gauge, "Time in steps that were not repeated later or before, as a fraction of the time for which devices were held."}
	GPUTrainingRestarts         = Metric{"gpu.training.restarts", "{restart}", Counter, "Starts of the run after its first."}
	GPUTrainingLostSteps        = Metric{"gpu.training.lost_steps", "{step}", Counter, "Steps that a restart threw away: from the first step after it to the highest before it."}
	GPUTrainingDataWaitRatio    = Metric{"gpu.training.data.wait.ratio", "1", Gauge, "Time that steps waited for input, as a fraction of their duration."}
)

// Attributes of training. training.run.id, of the resource or of points, is the same over the
// restarts of a run.
const (
	TrainingRunID               = "training.run.id"
	TrainingPrecision           = "training.precision" // bf16, fp16, tf32, fp32 or fp8
	TrainingRank                = "training.rank"      // of a point of a job whose ranks send each
	TrainingSkipReason          = "training.skip.reason"
	TrainingValue               = "training.value"
	TrainingPhase               = "training.phase" // init, compile, step, data, checkpoint, eval or other
	TrainingCheckpointOperation = "training.checkpoint.operation"
	TrainingCheckpointBlocking  = "training.checkpoint.blocking" // true: the training waited
	// GPUTrainingBasis is what the time of gpu.training.mfu is: step, the duration of the steps,
	// or wall, the clock on the wall, pauses included.
	GPUTrainingBasis = "gpu.training.basis"
	// GPUTrainingPeak is the precision of the peak that fp8 was measured against: bf16 or fp8.
	GPUTrainingPeak = "gpu.training.peak"
	// GPUTrainingWindow is what gpu.training.goodput is over: 1h, or run for all of it.
	GPUTrainingWindow = "gpu.training.window"
)

// TrainingPrefix begins the metrics and the attributes that a training job sends.
const TrainingPrefix = "training."

// Values of the attributes of training.
const (
	TrainingSkipOverflow  = "overflow"
	TrainingSkipNonfinite = "nonfinite"
	TrainingValueLoss     = "loss"
	TrainingValueGradient = "gradient"
	TrainingSave          = "save"
	TrainingRestore       = "restore"
	TrainingBasisStep     = "step"
	TrainingBasisWall     = "wall"
	TrainingWindowHour    = "1h"
	TrainingWindowRun     = "run"
)
