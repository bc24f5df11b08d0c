// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// ofRun names a training run: of a service of Kubernetes, or of a job of Slurm.
var ofRun = queries.OfRuns

// theRun is the text that names one; empty labels leave nothing behind.
const theRun = "{{ with $labels." + queries.SlurmJob + " }}job {{ . }}{{ end }}{{ with $labels." + queries.Namespace + " }}{{ . }}/{{ end }}{{ $labels." + queries.Service + " }}" +
	"{{ with $labels." + queries.TrainingRun + " }} (run {{ . }}){{ end }}"

func trainingAlerts() []alert {
	increase := func(series, window string, selectors ...queries.Selector) string {
		return sum("increase("+queries.Of(series, selectors...)+"["+window+"])", ofRun...)
	}
	mean := func(histogram, window string, selectors ...queries.Selector) string {
		return "(" + increase(histogram+"_sum", window, selectors...) + " / " + increase(histogram+"_count", window, selectors...) + ")"
	}
	// What a job of Slurm sends has a service, which gpu_training's figures of it have not.
	held := func(series string) string {
		goodput := func(of []string, more ...queries.Selector) string {
			return " and" + on(of...) + most(queries.Of(queries.TrainingGoodput, append(more, queries.Is(queries.TrainingWindow, "run"))...), of...)
		}
		ofJob := []string{queries.SlurmCluster, queries.SlurmJob, queries.TrainingRun}
		return series + goodput(ofRun) + " or " + series + goodput(ofJob, set(queries.SlurmJob))
	}
	nonfinite := counter{series: sum(queries.TrainingNonfinite, ofRun...), key: ofRun, reports: most(queries.TrainingStep, ofRun...), subject: ofRun}
	steps := queries.TrainingStepDuration
	stands := func(window, least, below string) string {
		step := mean(steps, "6h")
		return "(" + increase(steps+"_count", window) + " == 0 and" + on(ofRun...) + "(" + step + " >= " + least + " < " + below + "))"
	}
	behind := "(" + most(queries.TrainingStep, ofRun...) + " - " + most(queries.TrainingCheckpointStep, ofRun...) + ")"
	usual := "(" + most("max_over_time("+queries.TrainingCheckpointStep+"[6h]) - min_over_time("+queries.TrainingCheckpointStep+"[6h])", ofRun...) +
		" / " + most("changes("+queries.TrainingCheckpointStep+"[6h])", ofRun...) + ")"
	saves := []queries.Selector{queries.Is(queries.TrainingOperation, "save"), queries.Is(queries.TrainingBlocking, "true")}
	save := func(window string) string { return mean(queries.TrainingCheckpoint, window, saves...) }
	return []alert{
		{
			name: "TrainingNotFinite", severity: warning,
			expr:    nonfinite.rise(5*time.Minute) + " > 0",
			summary: theRun + " has losses or gradients that are not finite.",
			meaning: "The job counted values that are NaN or infinite in the last five minutes. Steps that follow may train nothing.",
			check: []string{
				"`training_nonfinite_total` by `training_value`, and `training_gradient_norm` before it.",
				"GPUXIDErrors and ECC errors of its devices: a board that computes wrongly is seen like this.",
			},
			do: []string{"Go back to a checkpoint before it; lower the learning rate, or skip the batch.", "Again on the same device and not on others: take that board out."},
		},
		{
			name: "TrainingStands", severity: critical, wait: "1m",
			expr:    held("(" + stands("10m", "0", "60") + " or " + stands("1h", "60", "360") + ")"),
			summary: theRun + " has finished no step for long, and its devices are held.",
			meaning: "No step ended for ten minutes, or for an hour where steps take minutes. A collective that hangs, an input that does not come, or a process that waits for another looks like this.",
			check: []string{
				"Utilization of its devices: near 1 with tensor pipes at 0 is a collective that spins and waits for a rank that does not come.",
				"Its log, and `py-spy dump` of a process; the storage of input and checkpoints.",
			},
			do: []string{"End the job where its own watchdog does not, and let it go on from its checkpoint."},
		},
		{
			name: "TrainingSlower", severity: warning, wait: "5m",
			expr:    mean(steps, "15m") + " > 1.3 * " + "(" + increase(steps+"_sum", "6h") + " - " + increase(steps+"_sum", "15m") + ") / (" + increase(steps+"_count", "6h") + " - " + increase(steps+"_count", "15m") + ")",
			summary: "Steps of " + theRun + " take {{ $value | humanizeDuration }}, a third more than before.",
			meaning: "The mean step of 15 minutes is 1.3 times that of the six hours before them.",
			check: []string{
				"`gpu_training_data_wait_ratio`: the input. GPUStraggler, throttling and clocks of its devices: one slow board slows all.",
				"Another sequence length, batch or model: then nothing is wrong.",
			},
			do: []string{"Replace the slow board; give the input more workers."},
		},
		{
			name: "TrainingStarved", severity: info, wait: "30m",
			expr:    most(queries.TrainingDataWait, ofRun...) + " > 0.2",
			summary: "Steps of " + theRun + " wait for input for {{ $value | humanizePercentage }} of their time.",
			meaning: "More than a fifth of the time of steps is waiting for data, for half an hour.",
			check:   []string{"CPU and network of its nodes, and the storage that the data comes from."},
			do:      []string{"More workers or prefetch, data in larger files, a cache on the node."},
		},
		{
			name: "TrainingCheckpointLate", severity: warning, wait: "10m",
			expr:    behind + " > 3 * " + usual,
			summary: theRun + " has trained {{ $value }} steps since its last checkpoint.",
			meaning: "That is more than three times the usual distance of the last six hours. What a restart now would lose is that much.",
			check:   []string{"The job's log about saving; space and errors of the storage."},
			do:      []string{"Make room, or save by hand where the job can."},
		},
		{
			name: "TrainingCheckpointSlow", severity: info,
			expr:    save("1h") + " > 3 * " + save("6h"),
			summary: "Checkpoints of " + theRun + " hold the training for {{ $value | humanizeDuration }}.",
			meaning: "Blocking saves of the last hour took more than three times the mean of six hours.",
			check:   []string{"The storage: who else writes now."},
			do:      []string{"Save asynchronously, or to a local disk first."},
		},
		{
			name: "TrainingGoodputLow", severity: info, wait: "10m",
			expr:    most("avg_over_time("+queries.Of(queries.TrainingGoodput, queries.Is(queries.TrainingWindow, "1h"))+"[6h])", ofRun...) + " < 0.7",
			summary: "Only {{ $value | humanizePercentage }} of the time of " + theRun + " made progress.",
			meaning: "The mean of six hours. The rest of the time, while devices were held, went into starts, checkpoints, waiting, and steps that a restart repeated.",
			check: []string{
				"`gpu_training_restarts_total` and `gpu_training_lost_steps_total`: restarts. `training_time_seconds_total` by phase: what else.",
			},
			do: []string{"Save more often, and in the background; find why it restarts."},
		},
	}
}

// aRun is what the variables of the board choose.
var aRun = queries.And(inNamespace, chosen(queries.Service, "service"), chosen(queries.SlurmJob, "job"), chosen(queries.TrainingRun, "run"))

// ofTheRun is a legend: labels that a run has not are empty.
const ofTheRun = "{{" + queries.Namespace + "}} {{" + queries.Service + "}} {{" + queries.SlurmJob + "}} {{" + queries.TrainingRun + "}}"

func trainingBoard() board {
	values := func(label string, s ...queries.Selector) string {
		return queries.Of(queries.TrainingStep, s...) + ", " + label
	}
	return board{
		uid: "otelcol-gpu-training", title: "GPU training",
		description: "What training runs send of themselves, what follows from it and from their devices, and what those devices do. " +
			"A line a run. What a run does not send is absent: docs/reference/training.md has what is needed for what.",
		variables: []variable{
			clusterVariable,
			{"namespace", "Namespace", "Namespace of the pods; empty for jobs of Slurm.", values(queries.Namespace, inCluster)},
			{"service", "Service", "service.name of the run.", values(queries.Service, inNamespace)},
			{"job", "Job", "slurm.job.id; empty on Kubernetes.", values(queries.SlurmJob, inNamespace, chosen(queries.Service, "service"))},
			{"run", "Run", "training.run.id; the same across restarts.", values(queries.TrainingRun, inNamespace, chosen(queries.Service, "service"), chosen(queries.SlurmJob, "job"))},
		},
		rows: []row{
			{"Now", trainingNow()},
			{"Learning", trainingLearning()},
			{"Speed", trainingSpeed()},
			{"Where the time goes", trainingTime()},
			{"Devices of the runs", trainingDevices()},
		},
	}
}

// ofRuns is a line a run; more are further labels of its series.
func ofRuns(series string, more ...string) query {
	q := query{expr: most(last(series), append(ofRun[:len(ofRun):len(ofRun)], more...)...), legend: ofTheRun}
	if len(more) > 0 {
		q.legend += " " + name(more...)
	}
	return q
}

func ofARun(metric string, s ...queries.Selector) string {
	return queries.Of(metric, append(s, aRun)...)
}

func trainingNow() []panel {
	now := func(title, description, unit, series string) panel {
		q := ofRuns(series)
		return panel{kind: number, title: title, description: description, unit: unit, width: 4, height: 4, queries: []query{q}}
	}
	return []panel{
		now("Step", "Number of the newest step. It goes back after a restart.", units.Short, ofARun(queries.TrainingStep)),
		now("Loss", "Of the newest step.", units.Short, ofARun(queries.TrainingLoss)),
		now("MFU", "Of the time of steps. Absent where the model, the precision or a device is not known.", units.PercentUnit, ofARun(queries.TrainingMFU, queries.Is(queries.TrainingBasis, "step"))),
		now("Goodput", "Time in steps that counted, of the time for which devices were held since the run began.", units.PercentUnit, ofARun(queries.TrainingGoodput, queries.Is(queries.TrainingWindow, "run"))),
		now("Restarts", "Since the gateway's start.", units.Short, ofARun(queries.TrainingRestarts)),
		now("Lost steps", "Steps that a restart threw away, since the gateway's start.", units.Short, ofARun(queries.TrainingLostSteps)),
	}
}

func trainingLearning() []panel {
	rises := func(metric string) query {
		return query{expr: sum("increase("+ofARun(metric)+"[5m])", ofRun...), legend: ofTheRun}
	}
	skipped := rises(queries.TrainingSkipped)
	skipped.legend += " skipped"
	bad := rises(queries.TrainingNonfinite)
	bad.legend += " not finite"
	return []panel{
		lines("Loss", "Of the newest step, where it is finite.", units.Short, ofRuns(ofARun(queries.TrainingLoss))),
		lines("Gradient norm", "Before clipping.", units.Short, ofRuns(ofARun(queries.TrainingGradientNorm))),
		lines("Steps", "A line that falls is a restart from a checkpoint; one that is flat stands.", units.Short, ofRuns(ofARun(queries.TrainingStep))),
		lines("Not finite, and skipped", "Losses and gradients that were NaN or infinite, and steps that changed no weight, within five minutes.", units.Short, bad, skipped),
	}
}

func trainingSpeed() []panel {
	quantile := func(q float64, legend string) query {
		return query{expr: quantileOf(q, queries.TrainingStepDuration, aRun, ofRun...), legend: ofTheRun + " " + legend}
	}
	each := ofRuns(ofARun(queries.TrainingDeviceTokens))
	mfu := withMax(lines("MFU", "Model FLOPs utilization. step: while steps run; wall: pauses count. Absent, never guessed: gpu_training's metric of runs without it has why.", units.PercentUnit,
		ofRuns(ofARun(queries.TrainingMFU), queries.TrainingBasis)))
	return []panel{
		lines("Duration of a step", "By the wall clock.", units.Seconds, quantile(0.5, "p50"), quantile(0.99, "p99")),
		mfu,
		lines("Tokens a second", "Of the whole run.", units.Short, ofRuns(ofARun(queries.TrainingThroughput))),
		lines("Tokens a second and device", "Comparable between runs of other sizes.", units.Short, each),
	}
}

func trainingTime() []panel {
	phases := lines("Phases", "Part of the processes' time in each phase.", units.PercentUnit,
		query{expr: sum(rate(ofARun(queries.TrainingTime)), append(ofRun[:len(ofRun):len(ofRun)], queries.TrainingPhase)...), legend: ofTheRun + " " + name(queries.TrainingPhase)})
	phases.stacked = true
	goodput := withMax(lines("Goodput", "Time in steps that counted, of the last hour and of the whole run.", units.PercentUnit, ofRuns(ofARun(queries.TrainingGoodput), queries.TrainingWindow)))
	wait := withMax(lines("Wait for input", "Of the time of steps.", units.PercentUnit, ofRuns(ofARun(queries.TrainingDataWait))))
	wait.warn = 0.2
	gap := query{
		expr:   most(last(ofARun(queries.TrainingStep)), ofRun...) + " - " + most(last(ofARun(queries.TrainingCheckpointStep)), ofRun...),
		legend: ofTheRun,
	}
	saved := queries.And(aRun, queries.Is(queries.TrainingOperation, "save"))
	save := query{expr: quantileOf(0.5, queries.TrainingCheckpoint, saved, append(ofRun[:len(ofRun):len(ofRun)], queries.TrainingBlocking)...), legend: ofTheRun + " blocking: " + name(queries.TrainingBlocking)}
	return []panel{
		phases, goodput, wait,
		lines("Steps since the last checkpoint", "What a restart now would lose.", units.Short, gap),
		lines("Duration of saves", "Half of the saves took no longer. Those with blocking true held the training.", units.Seconds, save),
	}
}

// devicesOfRuns are the series of devices that the chosen runs have: by service or by job.
func devicesOfRuns(series string) string {
	among := func(s ...queries.Selector) func(labels ...string) string {
		return func(labels ...string) string {
			return " and" + on(labels...) + most(last(queries.Of(queries.TrainingStep, append(s, aRun)...)), labels...)
		}
	}
	return "(" + series + among(set(queries.Service))(queries.Cluster, queries.Namespace, queries.Service) + " or " +
		series + among(set(queries.SlurmJob))(queries.SlurmCluster, queries.SlurmJob) + ")"
}

func trainingDevices() []panel {
	each := func(series string, more ...string) query {
		return query{expr: most(devicesOfRuns(mean(series)), append(device[:len(device):len(device)], more...)...), legend: ofDevice + " " + name(more...)}
	}
	tensor := withMax(lines("Tensor activity", "Near 0 on all devices that are busy: they wait for a rank that does not come.", units.PercentUnit, each(queries.Of(queries.PipeActive, inCluster, pipe("tensor")))))
	return []panel{
		withMax(lines("Utilization", "A device that waits in a collective operation counts as busy.", units.PercentUnit, each(queries.General(inCluster)))),
		tensor,
		lines("Clock of SMs", "A device whose clock is lower than that of the others holds all of them back.", units.Hertz, each(queries.Of(queries.Clock, inCluster, queries.Is(queries.ClockDomain, "sm")))),
		withMax(lines("Throttling", "Part of the time in which the device was held back, by reason.", units.PercentUnit, each(queries.Of(queries.Throttle, inCluster), queries.Reason))),
	}
}

// aCommunicator is what the variables of the board of collective operations choose.
var aCommunicator = queries.And(inNamespace, chosen(queries.Service, "service"), chosen(queries.SlurmJob, "job"), chosen(queries.NCCLCommunicator, "communicator"))

// ofTheCommunicator is a legend: labels that one has not are empty.
const ofTheCommunicator = "{{" + queries.Namespace + "}} {{" + queries.Service + "}} {{" + queries.SlurmJob + "}} {{" + queries.NCCLCommunicator + "}}"

// theCommunicator is the text that names one; empty labels leave nothing behind.
const theCommunicator = "{{ $labels." + queries.NCCLCommunicator + " }} of {{ with $labels." + queries.SlurmJob + " }}job {{ . }}{{ end }}" +
	"{{ with $labels." + queries.Namespace + " }}{{ . }}/{{ end }}{{ $labels." + queries.Service + " }}"

func collectiveAlerts() []alert {
	of := queries.OfCommunicators
	ofRank := append(of[:len(of):len(of)], queries.NCCLRank, queries.NCCLHost)
	return []alert{
		{
			name: "NCCLStraggler", severity: warning, event: names.EventNCCLStraggler, wait: "3m",
			expr:    most(queries.NCCLLate, ofRank...) + " > 0.5 and" + on(of...) + most(queries.NCCLWait, of...) + " > 0.05",
			summary: "Communicator " + theCommunicator + " waits for rank {{ $labels." + queries.NCCLRank + " }} on {{ $labels." + queries.NCCLHost + " }}.",
			meaning: "The rank comes last to most collective operations, and all ranks wait for it for more than a twentieth of their time in them. Its own operations are the shortest: it comes when the others have begun.",
			check: []string{
				"The event `nccl.straggler`: throttling and the last XID of its GPU. GPUThrottled, GPUStraggler and GPUPCIeReplays of its node.",
				"What else runs on the node: CPU, memory, the input of that rank (`training_data_wait_duration_seconds`).",
			},
			do: []string{"Repair or drain the node; give the job another one. Unequal work of ranks is the job's own."},
		},
		{
			name: "NCCLStalled", severity: critical, event: names.EventNCCLStall, wait: "1m",
			expr:    most(queries.NCCLStalled, of...) + " > 0",
			summary: "No rank of {{ with $labels." + queries.SlurmJob + " }}job {{ . }}{{ end }}{{ with $labels." + queries.Namespace + " }}{{ . }}/{{ end }}{{ $labels." + queries.Service + " }} ends collective operations, and its devices are held.",
			meaning: "Nothing arrives of any rank for five minutes, or ten times its usual gap. An operation is written when it has ended, so which one hangs is not known.",
			check: []string{
				"The event `nccl.stall`: confirmed means that all devices are busy, without tensor cores and NVLink.",
				"The job's log and `py-spy dump` of its processes; XIDs and link errors of its nodes. A long evaluation without collective operations looks the same, and is only suspected.",
			},
			do: []string{"End the job where its own watchdog does not, and let it go on from its checkpoint."},
		},
	}
}

func collectivesBoard() board {
	values := func(label string, s ...queries.Selector) string {
		return queries.Of(queries.NCCLRanks, s...) + ", " + label
	}
	inService := []queries.Selector{inNamespace, chosen(queries.Service, "service")}
	return board{
		uid: "otelcol-gpu-collectives", title: "GPU collectives",
		description: "Collective operations of NCCL: what ranks wait for, and how fast they are. A line a communicator; those of one job and label are one.",
		variables: []variable{
			clusterVariable,
			{"namespace", "Namespace", "Namespace of the pods; empty for jobs of Slurm.", values(queries.Namespace, inCluster)},
			{"service", "Service", "service.name of the job.", values(queries.Service, inNamespace)},
			{"job", "Job", "slurm.job.id; empty on Kubernetes.", values(queries.SlurmJob, inService...)},
			{"communicator", "Communicator", "Its name, or its ranks and nodes.", values(queries.NCCLCommunicator, inService...)},
		},
		rows: []row{{"Waiting", collectivesWaiting()}, {"Operations", collectivesOperations()}, {"Data", collectivesData()}},
	}
}

// ofCommunicators is a line a communicator; more are further labels of its series.
func ofCommunicators(metric string, more ...string) query {
	labels := append(queries.OfCommunicators[:len(queries.OfCommunicators):len(queries.OfCommunicators)], more...)
	q := query{expr: most(last(queries.Of(metric, aCommunicator)), labels...), legend: ofTheCommunicator}
	if len(more) > 0 {
		q.legend += " " + name(more...)
	}
	return q
}

func collectivesWaiting() []panel {
	wait := withMax(lines("Waiting for the last rank", "Of the time of all ranks in collective operations.", units.PercentUnit, ofCommunicators(queries.NCCLWait)))
	wait.warn = 0.05
	return []panel{
		wait,
		withMax(lines("Latest ranks", "Of how many operations they came last: the three latest of each communicator.", units.PercentUnit, ofCommunicators(queries.NCCLLate, queries.NCCLRank, queries.NCCLHost))),
		lines("Their lateness", "Behind the median of the ranks, on average over the operations to which they came last.", units.Seconds, ofCommunicators(queries.NCCLLateness, queries.NCCLRank, queries.NCCLHost)),
		lines("Stalled", "1 where nothing arrives of any rank and the devices are held.", units.Short, ofCommunicators(queries.NCCLStalled)),
	}
}

func collectivesOperations() []panel {
	ofOperation := append(queries.OfCommunicators[:len(queries.OfCommunicators):len(queries.OfCommunicators)], queries.NCCLOperation)
	legend := ofTheCommunicator + " " + name(queries.NCCLOperation)
	perSecond := func(metric string) query {
		took := sum(rate(queries.Of(queries.NCCLDuration+"_sum", aCommunicator)), ofOperation...)
		return query{expr: sum(rate(queries.Of(metric, aCommunicator)), ofOperation...) + " /" + on(ofOperation...) + took, legend: legend}
	}
	return []panel{
		lines("Bus bandwidth", "Of a rank while it is in operations: comparable with the hardware's, whatever the number of ranks.", units.BytesPerSecondIEC, perSecond(queries.NCCLBusBytes)),
		lines("Bandwidth", "Of messages, of a rank while it is in operations.", units.BytesPerSecondIEC, perSecond(queries.NCCLBytes)),
		lines("Duration of operations", "Half of them took no longer. Waiting is a part of it.", units.Seconds,
			query{expr: quantileOf(0.5, queries.NCCLDuration, aCommunicator, ofOperation...), legend: legend}),
		lines("Operations a second", "Collective operations of all ranks.", units.CountsPerSecond,
			query{expr: sum(rate(queries.Of(queries.NCCLDuration+"_count", aCommunicator)), ofOperation...), legend: legend}),
	}
}

func collectivesData() []panel {
	return []panel{
		lines("Ranks", "Of which something arrived within a minute, and the others.", units.Short, ofCommunicators(queries.NCCLRanks, queries.NCCLRankState)),
		lines("Age of the newest record", "Of the rank that is longest silent.", units.Seconds, ofCommunicators(queries.NCCLAge)),
	}
}
