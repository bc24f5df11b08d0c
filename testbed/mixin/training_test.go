// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"math"
	"strconv"
)

// training is what a job sends of itself, the pod trainer of the fleet, and what gpu_training
// reports of it.
func training(add func(string, float64, ...string), seconds float64) {
	of := func(name string, value float64, more ...string) {
		add(name, value, append([]string{"k8s_namespace_name", "training", "service_name", "trainer", "training_run_id", "r1", "slurm_job_id", ""}, more...)...)
	}
	for name, value := range map[string]float64{
		"training_step": seconds / 2, "training_checkpoint_step": math.Floor(seconds/300) * 150, "training_loss": 2.1, "training_gradient_norm": 0.4,
		"gpu_training_throughput_per_second": 8000, "gpu_training_device_throughput_per_second": 8000, "gpu_training_data_wait_ratio": 0.02,
		"gpu_training_restarts_total": 1, "gpu_training_lost_steps_total": 12,
	} {
		of(name, value)
	}
	of("gpu_training_mfu_ratio", 0.4, "gpu_training_basis", "step")
	of("gpu_training_mfu_ratio", 0.38, "gpu_training_basis", "wall")
	of("gpu_training_goodput_ratio", 0.9, "gpu_training_window", "1h")
	of("gpu_training_goodput_ratio", 0.9, "gpu_training_window", "run")
	of("training_nonfinite_total", 0, "training_value", "loss")
	of("training_steps_skipped_total", seconds/60, "training_skip_reason", "overflow")
	of("training_time_seconds_total", seconds*0.9, "training_phase", "step")
	of("training_time_seconds_total", seconds*0.1, "training_phase", "data")
	for _, le := range []string{"1", "5", "+Inf"} {
		of("training_step_duration_seconds_bucket", seconds/2, "le", le)
		of("training_checkpoint_duration_seconds_bucket", seconds/300, "le", le, "training_checkpoint_operation", "save", "training_checkpoint_blocking", "true")
	}
}

// collectives are what nccl reports of that job, whose rank 1 is late.
func collectives(add func(string, float64, ...string), seconds float64) {
	of := func(name string, value float64, more ...string) {
		add(name, value, append([]string{"k8s_namespace_name", "training", "service_name", "trainer", "nccl_communicator", "DP", "slurm_job_id", ""}, more...)...)
	}
	of("nccl_communicator_wait_ratio", 0.03)
	of("nccl_communicator_stalled", 0)
	of("nccl_communicator_ranks", 2, "nccl_rank_state", "reporting")
	of("nccl_communicator_ranks", 0, "nccl_rank_state", "silent")
	of("nccl_rank_late_ratio", 0.4, "nccl_rank", "1", "nccl_host", "node-a")
	of("nccl_rank_lateness_seconds", 0.001, "nccl_rank", "1", "nccl_host", "node-a")
	for _, rank := range []string{"0", "1"} {
		ofRank := []string{"nccl_rank", rank}
		of("nccl_data_age_seconds", 2, ofRank...)
		ofRank = append(ofRank, "nccl_operation", "AllReduce")
		of("nccl_operation_bytes_total", seconds*1e9, ofRank...)
		of("nccl_operation_bus_bytes_total", seconds*1e9, ofRank...)
		of("nccl_operation_duration_seconds_sum", seconds/10, ofRank...)
		of("nccl_operation_duration_seconds_count", seconds*10, ofRank...)
		for _, le := range []string{"0.01", "0.05", "+Inf"} {
			of("nccl_operation_duration_seconds_bucket", seconds*10, append(ofRank[:len(ofRank):len(ofRank)], "le", le)...)
		}
	}
}

// run are the labels of a training run.
const run = `k8s_cluster_name="c1",k8s_namespace_name="ml",service_name="llama",training_run_id="r1"`

const (
	trainingSteps = `training_step_duration_seconds`
	trainingSaves = `training_checkpoint_duration_seconds`
	saved         = `,training_checkpoint_operation="save",training_checkpoint_blocking="true"}`
)

// trains is a run in which nothing is wrong: a step of two seconds, a checkpoint of 30 s every 150
// steps, which is five minutes.
var trains = map[string]string{
	trainingSteps + `_sum{` + run + `}`:                                 "0+30x480",
	trainingSteps + `_count{` + run + `}`:                               "0+15x480",
	`training_step{` + run + `}`:                                        "0+15x480",
	`training_checkpoint_step{` + run + `}`:                             saves(480),
	`training_nonfinite_total{training_value="loss",` + run + `}`:       "0x480",
	trainingSaves + `_sum{` + run + saved:                               "0+3x480",
	trainingSaves + `_count{` + run + saved:                             "0+0.1x480",
	`gpu_training_goodput_ratio{gpu_training_window="run",` + run + `}`: "0.9x480",
	`gpu_training_goodput_ratio{gpu_training_window="1h",` + run + `}`:  "0.9x480",
	`gpu_training_data_wait_ratio{` + run + `}`:                         "0.05x480",
	`gpu_training_restarts_total{` + run + `}`:                          "0x480",
}

// saves are the values of training_checkpoint_step up to a sample, and then the last of them.
func saves(until int) string {
	text, last := "", 0
	for i := range 480 {
		if i < until {
			last = i / 10 * 150
		}
		text += " " + strconv.Itoa(last)
	}
	return text[1:]
}

// trainingScenarios are what fires about training.
var trainingScenarios = map[string]scenario{
	"a run trains":           {nil, nil},
	"a loss is not finite":   {map[string]string{`training_nonfinite_total{training_value="loss",` + run + `}`: from("0", "3")}, []string{"TrainingNotFinite"}},
	"a run hangs":            {stopped(map[string]string{}), []string{"TrainingStands"}},
	"a run ended":            {stopped(map[string]string{`gpu_training_goodput_ratio{gpu_training_window="run",` + run + `}`: "0.9x360 _x119"}), nil},
	"steps take longer":      {map[string]string{trainingSteps + `_sum{` + run + `}`: "0+30x360 10845+45x119"}, []string{"TrainingSlower"}},
	"input is slow":          {map[string]string{`gpu_training_data_wait_ratio{` + run + `}`: from("0.05", "0.3")}, []string{"TrainingStarved"}},
	"no checkpoint is saved": {map[string]string{`training_checkpoint_step{` + run + `}`: saves(begin)}, []string{"TrainingCheckpointLate"}},
	"checkpoints are slow":   {map[string]string{trainingSaves + `_sum{` + run + saved: "0+3x360 1200+120x119"}, []string{"TrainingCheckpointSlow"}},
	"goodput is low": {
		map[string]string{`gpu_training_goodput_ratio{gpu_training_window="1h",` + run + `}`: "0.75x360 0.2x119"}, []string{"TrainingGoodputLow"},
	},
}

// stopped are the series of a run whose last step ended at begin.
func stopped(series map[string]string) map[string]string {
	return with(map[string]string{
		trainingSteps + `_sum{` + run + `}`: "0+30x360 10800x119", trainingSteps + `_count{` + run + `}`: "0+15x360 5400x119", `training_step{` + run + `}`: "0+15x360 5400x119",
		`training_checkpoint_step{` + run + `}`: saves(begin),
	}, series)
}

// communicator are the labels of one.
const communicator = `k8s_cluster_name="c1",k8s_namespace_name="ml",service_name="llama",nccl_communicator="DP"`

// together is a communicator in which nothing is wrong.
var together = map[string]string{
	`nccl_communicator_wait_ratio{` + communicator + `}`:                           "0.02x480",
	`nccl_communicator_stalled{` + communicator + `}`:                              "0x480",
	`nccl_rank_late_ratio{nccl_rank="11",nccl_host="node-b",` + communicator + `}`: "0.2x480",
}

// collectiveScenarios are what fires about collective operations.
var collectiveScenarios = map[string]scenario{
	"ranks work together": {nil, nil},
	"a rank is late": {
		map[string]string{
			`nccl_rank_late_ratio{nccl_rank="11",nccl_host="node-b",` + communicator + `}`: from("0.2", "0.95"), `nccl_communicator_wait_ratio{` + communicator + `}`: from("0.02", "0.3"),
		}, []string{"NCCLStraggler"},
	},
	"a rank is late and costs little": {
		map[string]string{`nccl_rank_late_ratio{nccl_rank="11",nccl_host="node-b",` + communicator + `}`: from("0.2", "0.95")}, nil,
	},
	"a job hangs": {map[string]string{`nccl_communicator_stalled{` + communicator + `}`: from("0", "1")}, []string{"NCCLStalled"}},
}
