// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"fmt"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/internal/xid"
)

// aDevice is the labels that name a device in an alert, whatever its owner.
var aDevice = []string{queries.Cluster, queries.Node, queries.Host, queries.Device, queries.Model, queries.Index}

func deviceAlerts() []alert {
	all := [][]alert{lostAlerts(), xidAlerts(), memoryAlerts(), heatAlerts(), vendorAlerts(), stragglerAlerts()}
	var list []alert
	for _, a := range all {
		list = append(list, a...)
	}
	return list
}

func lostAlerts() []alert {
	replays := deviceCounter(recordReplays, nil)
	return []alert{
		{
			name: "GPUDeviceLost", severity: critical, event: names.EventDeviceLost, wait: "1m",
			expr: count(queries.There("1h", physical), aDevice...) + " unless" + on(queries.Cluster, queries.Device) + queries.There("3m", physical) +
				// A board is there while a part of it is, if nothing is read of the whole.
				" unless" + on(queries.Cluster, queries.Device) + `label_replace(` +
				count(queries.There("3m", set(queries.Parent)), queries.Cluster, queries.Parent) +
				`, "` + queries.Device + `", "$1", "` + queries.Parent + `", "(.+)")` +
				// The exporter was seen more recently; if neither was, the node is lost.
				" and" + on(nodes...) + "(" + least("last_over_time("+queries.ExporterUp+"[2m])", nodes...) + " == 1)" +
				" unless" + on(nodes...) + "(" + most(queries.Reconfiguring, nodes...) + " == 1)" +
				" unless" + on(nodes...) + "(" + most(queries.Unrecognized, nodes...) + " == 1)",
			summary: theDevice + " is gone, and its exporter is up.",
			meaning: "The exporter responds and no longer lists the device, or lists it without a value: it fell off the bus, or the driver or the host engine gave up on it. A suspended device is not lost. Where Prometheus scrapes the gateway instead of being written to, it is noticed five minutes later (`metric_expiration`). Outside Kubernetes, where a device does not name its exporter, all exporters of the cluster must be up. The alert ends an hour after the device was last seen.",
			check: []string{
				"`nvidia-smi -L` on the node, and `dmesg | grep -i xid`: 79 is a GPU that has fallen off the bus.",
				"Whether it was removed, or its MIG mode was changed.",
			},
			do: []string{"Drain the node and reboot it. If the device does not come back: power and PCIe, then the vendor."},
		},
		{
			name: "GPUHealthWatchFailed", severity: warning, cause: true, wait: "2m",
			expr:    most(queries.Of(queries.HealthStatus, queries.Is(queries.HealthState, "fail"), not(queries.HealthWatch, names.WatchExporter)), append(aDevice[:len(aDevice):len(aDevice)], queries.HealthWatch)...) + " == 1",
			summary: "DCGM's health watch {{ $labels." + queries.HealthWatch + " }} fails on " + theDevice + ".",
			meaning: "DCGM itself reports a subsystem of the device as unhealthy.",
			check:   []string{"`dcgmi health -c` on the node shows the cause."},
			do:      []string{"Drain the node and run `dcgmi diag -r 3`; what it names decides."},
		},
		{
			name: "GPUPCIeReplays", severity: warning, cause: true, wait: "10m",
			expr:    replays.located(replays.more(time.Hour) + " > 60"),
			summary: "{{ $value | humanize }} PCIe replays in an hour on " + theDevice + ".",
			meaning: "Packets on the PCIe link have to be sent again: the link is bad. A few are normal.",
			check:   []string{"`nvidia-smi -q -d PERFORMANCE,PCIE`: link generation and width under load."},
			do:      []string{"Reseat the board or riser at the next maintenance; if the link has fewer lanes than it should, at once."},
		},
	}
}

func xidAlerts() []alert {
	reported := func(s queries.Selector) string {
		return deviceCounter(recordXID, []string{queries.XIDCode}, s).rose()
	}
	check := []string{
		"What the code means: it is in the event `gpu.xid`, with the recommended action.",
		"`dmesg | grep -i xid` on the node: process, and further codes beside it.",
		"Whether it comes back on the same device, whatever runs there.",
	}
	return []alert{
		{
			name: "GPUXIDFatal", severity: critical, cause: true, event: names.EventXID,
			expr:    reported(matching(queries.XIDCode, codes(xid.Fatal))),
			summary: "XID {{ $labels." + queries.XIDCode + " }} on " + theDevice + ": it cannot be relied on before a reset or repair.",
			meaning: "The driver reported an error after which the GPU cannot be used as it is.",
			check:   check,
			do:      []string{"Cordon the node; drain and reset the GPU, or reboot, as the event's action recommends.", "Comes back after that: collect nvidia-bug-report.sh and contact support."},
		},
		{
			name: "GPUXIDError", severity: warning, event: names.EventXID,
			expr:    reported(matching(queries.XIDCode, codes(xid.Error))),
			summary: "XID {{ $labels." + queries.XIDCode + " }} on " + theDevice + ": work was lost.",
			meaning: "The driver reported an error that ended work on the GPU or failed to repair something. The GPU itself can be used.",
			check:   check,
			do:      []string{"Restart the application if it did not restart itself; look for the fault in it first."},
		},
		{
			name: "GPUXIDWarning", severity: info, event: names.EventXID,
			expr:    reported(notMatching(queries.XIDCode, codes(xid.Fatal, xid.Error, xid.Info))),
			summary: "XID {{ $labels." + queries.XIDCode + " }} on " + theDevice + ".",
			meaning: "The driver reported something that needs no action at once, or a code that is not in the catalogue. Codes that report no fault do not fire.",
			check:   check,
			do:      []string{"Nothing at once; if it repeats, contact support."},
		},
	}
}

func memoryAlerts() []alert {
	counted := func(kind string) counter {
		return deviceCounter(recordErrors, []string{queries.ErrorType}, queries.Is(queries.ErrorType, kind))
	}
	corrected := counted("corrected")
	// Of an instance and not of its board, which has the sum; a replica has
	// none of its own.
	board := "count" + queries.By(queries.Cluster, queries.Parent) + "(" + queries.Of(queries.MemoryUtilization, set(queries.Parent)) + ")"
	fullness := most(queries.MemoryUtilization, append(aDevice[:len(aDevice):len(aDevice)], queries.MIGInstance)...)
	full := func(than string) string {
		return fullness + " > " + than + " unless" + on(queries.Cluster, queries.Device) +
			`label_replace(` + board + `, "` + queries.Device + `", "$1", "` + queries.Parent + `", "(.+)")`
	}
	return []alert{
		{
			name: "GPUECCUncorrected", severity: critical, cause: true, event: names.EventECCUncorrected,
			expr:    counted("uncorrected").rose(),
			summary: "Uncorrected memory errors on " + theDevice + ".",
			meaning: "Data in the GPU's memory was lost. What ran there has failed or may be wrong.",
			check:   []string{"`nvidia-smi -q -d ECC,ROW_REMAPPER` on the node.", "XID 48, 63, 64, 94, 95 beside it: the events."},
			do:      []string{"Restart what ran there, from a checkpoint before the error.", "Reset the GPU when it is free, so that spare rows are used. If errors come back: have it replaced."},
		},
		{
			name: "GPUECCCorrected", severity: info,
			expr:    corrected.located(corrected.more(time.Hour) + " > 10"),
			summary: "{{ $value | humanize }} corrected memory errors in an hour on " + theDevice + ".",
			meaning: "The memory corrects itself, but often. No data was lost.",
			check:   []string{"`gpu_memory_remapped_rows_total` and whether the rate grows: dashboard GPU health."},
			do:      []string{"Watch it; plan a replacement if uncorrected errors or failed remaps follow."},
		},
		{
			name: "GPURowRemapFailure", severity: critical, cause: true, event: names.EventRowRemapFailure,
			expr:    most(queries.RowRemapFailure, aDevice...) + " == 1",
			summary: "A memory row of " + theDevice + " could not be replaced.",
			meaning: "There is no spare row left for it: the next error there is lost data.",
			check:   []string{"`nvidia-smi -q -d ROW_REMAPPER`."},
			do:      []string{"Drain the GPU and have it replaced. The flag stays until then."},
		},
		{
			name: "GPURowRemapPending", severity: warning, cause: true, event: "gpu.row_remap.pending",
			expr:    most(names.GPURowRemapPending.Prometheus(), aDevice...) + " == 1",
			summary: "A memory row of " + theDevice + " waits for a reset to be replaced.",
			meaning: "A faulty row has a spare, which is used from the next reset of the GPU on. Work may go on until then.",
			check:   []string{"`nvidia-smi -q -d ROW_REMAPPER`.", "XID 63 beside it: the events."},
			do:      []string{"Drain the GPU and reset it, or reboot the node, when it is free."},
		},
		{
			name: "GPUPagesRetiredPending", severity: info, cause: true,
			expr:    most(queries.RetiredPending, aDevice...) + " == 1",
			summary: "Pages of " + theDevice + " wait for a reboot to be retired.",
			meaning: "Faulty pages are still in use until the GPU is reset.",
			check:   []string{"`nvidia-smi -q -d PAGE_RETIREMENT`."},
			do:      []string{"Reset the GPU, or reboot the node, when it is free."},
		},
		{
			name: "GPUMemoryPressure", severity: warning, event: names.EventMemoryPressure, wait: "2m",
			expr:    full("0.95"),
			summary: "Memory of " + theDevice + " is {{ $value | humanizePercentage }} full.",
			meaning: "An allocation may fail. Model servers that reserve their memory at the start live here: give them a threshold of their own or silence them.",
			check:   []string{"Who uses it: dashboard GPU service, or `nvidia-smi` on the node.", "Whether it grows: a leak, or longer requests."},
			do:      []string{"A smaller batch, context or cache fraction; or a GPU with more memory."},
		},
		{
			name: "GPUMemoryPressureCritical", severity: critical, event: names.EventMemoryPressure, wait: "1m",
			expr:    full("0.98"),
			summary: "Memory of " + theDevice + " is {{ $value | humanizePercentage }} full.",
			meaning: "The next allocation is likely to fail.",
			check:   []string{"As for GPUMemoryPressure."},
			do:      []string{"As for GPUMemoryPressure, now: lower the load before the process is killed."},
		},
	}
}

func heatAlerts() []alert {
	// HBM runs hotter than the chip.
	hot := func(chip, chipOfAMD, memory string) string {
		labels := append(aDevice[:len(aDevice):len(aDevice)], queries.Sensor)
		return most(queries.Of(queries.Temperature, not(queries.Sensor, "memory"), notAMD), labels...) + " > " + chip +
			" or " + most(queries.Of(queries.Temperature, not(queries.Sensor, "memory"), amd), labels...) + " > " + chipOfAMD +
			" or " + most(queries.Of(queries.Temperature, queries.Is(queries.Sensor, "memory")), labels...) + " > " + memory
	}
	cool := []string{"Other devices of the node and the nodes beside it: one is a fan or a heat sink, all is the room.", "`nvidia-smi -q -d TEMPERATURE,POWER` on the node."}
	return []alert{
		{
			name: "GPUThrottled", severity: warning, event: names.EventThrottle, wait: "2m",
			expr:    most(queries.Of(queries.Throttle, protecting), aDevice...) + " == 1",
			summary: theDevice + " slows down to protect itself.",
			meaning: "Heat or the power brake hold the clocks down. A power cap alone does not count: that is a configured limit.",
			check:   append([]string{"Which reason: `gpu_throttle_active == 1`."}, cool...),
			do:      []string{"Thermal: cooling, air flow, dust; move work away meanwhile.", "Power brake: power supply and rack budget."},
		},
		{
			name: "GPUTemperatureHigh", severity: warning, event: names.EventTemperature, wait: "5m",
			expr:    hot("85", "95", "95"),
			summary: theDevice + " is at {{ $value }} °C ({{ $labels." + queries.Sensor + " }}).",
			meaning: "The chip is above 85 °C, that of an AMD board above 95 °C at its hottest point, or its memory above 95 °C. It will throttle soon.",
			check:   cool,
			do:      []string{"Improve the cooling; a lower power limit (`nvidia-smi -pl`) helps at once."},
		},
		{
			name: "GPUTemperatureCritical", severity: critical, event: names.EventTemperature, wait: "2m",
			expr:    hot("90", "100", "105"),
			summary: theDevice + " is at {{ $value }} °C ({{ $labels." + queries.Sensor + " }}).",
			meaning: "The chip is above 90 °C, that of an AMD board above 100 °C at its hottest point, or its memory above 105 °C. Near the limit at which it shuts down.",
			check:   cool,
			do:      []string{"Take the load away: cordon the node and drain the GPU. Then look for the cause."},
		},
	}
}

func stragglerAlerts() []alert {
	labels := append(aDevice[:len(aDevice):len(aDevice)], queries.Namespace, queries.Service, queries.StragglerCause)
	return []alert{{
		name: "GPUStraggler", severity: info, event: names.EventStraggler,
		expr:    most(queries.Straggler, labels...) + " == 1",
		summary: theDevice + " is slower than its peers in service {{ $labels." + queries.Service + " }} ({{ $labels." + queries.StragglerCause + " }}).",
		meaning: "The SM clock of the board is 10 % or more below the median of the service's other boards of the same model and power limit, and far outside their spread. " +
			"A synchronous job runs at the speed of its slowest GPU, and utilization does not show which one that is. " +
			"Spread between good boards is real: 8 % on average and up to 22 % were measured in large fleets. " +
			"Where the peers are far apart (MAD of 5 %), a board less than 26 % below their median is not found. Nothing is wrong with its results, and its state does not change.",
		check: []string{
			"The cause: thermal and power are throttled for more of the time than their peers, link has a reason against its link, of clock none is known.",
			"`nvidia-smi -q -d CLOCK,PERFORMANCE,POWER` on the node, beside one of its peers: locked clocks, application clocks, another power limit.",
			"Whether the board is slow in another job too.",
		},
		do: []string{
			"Thermal: cooling and air flow of that slot. Power: the supply of the node, and the limits of the others. Link: the [runbook](README.md#reasons-against-a-board) of the reason.",
			"If the job waits for it: take the board out of the job.",
			"Clock, and slow in another job too: reset the board when it is free, and run diagnostics if that does not help. " + health.ResetScope,
		},
	}}
}

var ofGPU = queries.Is(queries.HwType, names.HwTypeGPU)

// itsReasons lists the reasons for a state with their actions, as the text of an alert
// about a board.
func itsReasons(s health.State) string {
	return fmt.Sprintf("{{ range printf `%s{%s=%%q,%s=%%q,%s=%q} == 1` $labels.%s $labels.%s | query | sortByLabel %q }} {{ .Labels.%s }} ({{ .Labels.%s }}){{ end }}",
		queries.BoardReason, queries.Cluster, queries.Device, queries.HwState, s, queries.Cluster, queries.Device, queries.HealthReason, queries.HealthReason, queries.HealthAction)
}

// ofState is the alert about boards in a state. Its summary continues the name of the
// board.
func ofState(s health.State, name, severity, wait, summary, meaning string, do ...string) alert {
	return alert{
		name: name, severity: severity, state: true, event: names.EventHealth, wait: wait,
		expr:    most(queries.Of(queries.BoardStatus, ofGPU, queries.Is(queries.HwState, s.String())), aDevice...) + " == 1",
		summary: theDevice + " " + summary + ":" + itsReasons(s) + ".",
		meaning: meaning,
		check: []string{
			"Why: the reasons are in the summary of this alert, in the console on the page of the node, in `gpuctl nodes`, and in `gpu_health_reason == 1`. The reason has a [runbook](README.md#reasons-against-a-board) of its own: what it means, what clears it, what to do.",
			"What runs there: the owner is in the event `gpu.health`, and in the console.",
		},
		do: do,
	}
}

func healthAlerts() []alert {
	return []alert{
		ofState(health.Failed, "GPUHealthFailed", critical, "1m", "has failed",
			"Results, memory or the bus of the board cannot be relied on before the action is done. It must get no new work.",
			"Cordon the node, or keep new work off the board. Nothing here does it for you.",
			"The action of the reason, as its runbook has it. The heaviest action makes the lighter ones unnecessary."),
		ofState(health.PredictedFailure, "GPUHealthPredicted", warning, "10m", "is predicted to fail",
			"The board works; wear or repetition predicts that it will fail.",
			"Move long work away at its next end, and give the board no new work.", "The action of the reason, as its runbook has it."),
		ofState(health.Degraded, "GPUHealthDegraded", warning, "15m", "is degraded",
			"The board works, but slower, or it needs a reset when it is free.",
			"The action of the reason, as its runbook has it. What ends the work on the board can wait until the board is free."),
		{
			name: "GPUBoardsMissing", severity: critical, event: names.EventHealth, wait: "1m",
			expr:    most(queries.Of(queries.BoardReason, queries.Is(queries.HealthReason, "count")), queries.Cluster, queries.Node, queries.Host) + " == 1",
			summary: "Node " + theNode + " has fewer GPUs than a machine of its type should have.",
			meaning: "The node is failed, although each board that it has may be well: one or more were not there when its agent began to watch, so no event reports them as lost. It needs `health::expected` of `gpu_events`.",
			check:   []string{"The [runbook of the reason](health-count.md): what the driver and the bus of the node have."},
			do:      []string{"Keep new work off the node if it needs all boards. Then check power, cables and the seat of the boards, or have the machine replaced."},
		},
		{
			name: "GPUHealthUnknown", severity: info, wait: "15m",
			expr: count(queries.There("1d:30m", physical, notGaudi), aDevice...) +
				" unless" + on(queries.Cluster, queries.Device) + queries.Of(queries.BoardStatus, ofGPU) +
				" unless" + on(queries.Cluster, queries.Device) + "(" + queries.Of(queries.Suspended) + " == 1)" +
				" and" + on(nodes...) + count(queries.ExporterUp, nodes...),
			summary: "The health of " + theDevice + " is not known.",
			meaning: "The board was there within the last day, its node sends telemetry, and nothing fresh is read that decides about its health: XIDs, the recovery action, uncorrected memory errors or failed row remaps. Not known is not healthy. Boards of Gaudi are left out, since their exporter has nothing that decides, and so are suspended boards, of which nothing is read so that they stay so.",
			check: []string{
				"Whether GPUExporterDown, GPUExporterFrozen or GPUExporterUnrecognized fires for the node: that explains it.",
				"`gpuctl doctor` on the node: it names the fields that the exporter's page lacks, and the reasons that cannot be judged without them.",
				"Whether the board was removed, or its MIG mode was changed, within the last day.",
			},
			do: []string{"Repair the exporter, or give it the fields of our counters file ([docs/health.md](../health.md#coverage)).", "A board that was removed on purpose: nothing. The alert ends a day after the board was last seen."},
		},
	}
}

// Devices of a vendor, by the form of their ids.
var (
	amd      = matching(queries.Device, "GPU-([0-9a-fA-F]{16}|serial-.*)(/.*)?")
	notAMD   = queries.Selector(queries.Device + `!~"GPU-([0-9a-fA-F]{16}|serial-.*)(/.*)?"`)
	notGaudi = queries.Selector(queries.Device + `!~"GAUDI-.*"`)
)

// vendorAlerts are about what boards of other vendors than NVIDIA report.
func vendorAlerts() []alert {
	code := deviceCounter(recordRAS, []string{"gpu_ras_severity"}, not("gpu_ras_severity", "non_fatal_corrected"))
	port := deviceCounter(names.GPULinkUp.Prometheus(), []string{"gpu_link_index"}, not("gpu_link_kind", names.LinkExternal))
	link := queries.Of(names.GPULinkUp.Prometheus(), not("gpu_link_kind", names.LinkExternal))
	return []alert{
		{
			name: "GPURASError", severity: critical, cause: true, event: names.EventRAS,
			expr:    code.located(code.series + " > 0 and (changes(" + during(code.series, recently) + ") > 0 or " + code.began(recently) + ")"),
			summary: "AFID {{ $value }} ({{ $labels.gpu_ras_severity }}) on " + theDevice + ".",
			meaning: "An AMD board wrote a record of an error that was not corrected. The metric has the newest code alone: that the same one came again is not seen.",
			check: []string{
				"What the code means: it is in the event `gpu.ras`, with what to do.",
				"`amd-smi ras --cper` and `dmesg | grep -i amdgpu` on the node.",
			},
			do: []string{"As the event has it: a fatal error asks for a reset of the board, or more; another one has ended what used the data."},
		},
		{
			name: "GPUMemoryRepairFailed", severity: critical, cause: true, event: names.EventMemoryRepair,
			expr:    most(names.GPURetiredFailure.Prometheus(), aDevice...) + " == 1",
			summary: "Faulty memory of " + theDevice + " could not be replaced.",
			meaning: "A page of the memory could not be retired: the next error there is lost data.",
			check:   []string{"`amd-smi bad-pages` on the node."},
			do:      []string{"Drain the board and have it replaced. The flag stays until then."},
		},
		{
			name: "GPUMemoryRepairPending", severity: warning, cause: true, event: names.EventMemoryRepair,
			expr:    most(names.GPURemappedRowsPending.Prometheus(), aDevice...) + " == 1",
			summary: "Memory rows of " + theDevice + " wait for a reset to be replaced.",
			meaning: "Faulty rows have spares, which are used from the next reset of the board on. Work may go on until then.",
			check:   []string{"`hl-smi -q -d ROW_REPLACEMENT` on the node."},
			do:      []string{"Drain the board and reset it, or reboot the node, when it is free."},
		},
		{
			name: "GPUDeviceReset", severity: warning, event: names.EventDeviceReset,
			expr:    deviceCounter(recordResets, nil).rose(),
			summary: theDevice + " was reset.",
			meaning: "The driver, or a person, reset the device: what ran on it has ended.",
			check:   []string{"`dmesg` on the node: why the driver did.", "Whether errors were counted before: the events of the device."},
			do:      []string{"Restart what ran there. If it happens again, run the vendor's diagnostics."},
		},
		{
			name: "GPULinkDown", severity: critical, cause: true, event: names.EventLinkDown, wait: "1m",
			expr:    port.located(port.series + " == 0 and " + most("max_over_time("+link+"[1d])", port.key...) + " == 1"),
			summary: "Port {{ $labels.gpu_link_index }} of " + theDevice + " has no link to another GPU any more.",
			meaning: "Work on several boards of the node is slower, or fails. Ports to the network do not count.",
			check:   []string{"`hl-smi -n link` on Gaudi, `xpu-smi topology -m` on Intel.", "Whether the board at the other end was reset, or is lost."},
			do:      []string{"Reset the boards at both ends when they are free. If the port stays down, check their seats and contact the vendor."},
		},
	}
}
