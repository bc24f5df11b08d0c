// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/board"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/devicerules"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/markdown"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// reasonTable is the table of reasons in docs/health.md.
func reasonTable(all []*board.Reason) string {
	var b strings.Builder
	b.WriteString("| reason | raised when | state | action | cleared when | threshold from |\n|---|---|---|---|---|---|\n")
	for _, r := range all {
		fmt.Fprintf(&b, "| [`%s`](runbooks/%s) | %s | %s | `%s` | %s | %s |\n",
			r.Name, runbookOf(r), r.Doc.Raised, r.State, r.Action, r.Doc.Cleared, r.Doc.Source)
	}
	return b.String()
}

// count is the reason against a node, which no board has.
var count = &board.Reason{
	Name: devicerules.Count, State: health.Failed, Action: health.CheckMechanics,
	Doc: board.Doc{
		Means:   "The node has fewer boards than a machine of its type should have. One that was never seen since the agent began to watch is lost to no event: this finds it.",
		Raised:  "`health::expected` of `gpu_events` has more boards for the node's `host.type`, five minutes after its first page, while all of its exporters answer",
		Cleared: "there are as many",
		Source:  "the configuration; health checks of clusters of Meta and of AKS compare the same number",
	},
}

// documented are all reasons that have a runbook.
func documented() []*board.Reason { return append(slices.Clone(board.Reasons), count) }

func runbookOf(r *board.Reason) string { return names.HealthReason{Name: r.Name}.Runbook() }

// look is where the driver shows what a metric has.
var look = map[string]string{
	names.GPURecoveryAction.Name:      "`nvidia-smi -q | grep -i recovery`",
	names.GPUXIDLast.Name:             "`dmesg | grep -i xid`: process, and further codes beside it",
	names.HwErrors.Name:               "`nvidia-smi -q -d ECC`",
	names.GPURemappedRows.Name:        "`nvidia-smi -q -d ROW_REMAPPER`",
	names.GPURowRemapPending.Name:     "`nvidia-smi -q -d ROW_REMAPPER`",
	names.GPURowRemapFailure.Name:     "`nvidia-smi -q -d ROW_REMAPPER`",
	names.GPURemapBanks.Name:          "`nvidia-smi -q -d ROW_REMAPPER`: histogram of the banks",
	names.GPUSRAMExceeded.Name:        "`nvidia-smi -q -d ECC`: SRAM threshold exceeded",
	names.GPURetiredPages.Name:        "`nvidia-smi -q -d PAGE_RETIREMENT`",
	names.GPURetiredPending.Name:      "`nvidia-smi -q -d PAGE_RETIREMENT`",
	names.GPURetiredFailure.Name:      "`amd-smi bad-pages` on AMD",
	names.GPURemappedRowsPending.Name: "`hl-smi -q -d ROW_REPLACEMENT` on Gaudi",
	names.GPUNVLinkErrors.Name:        "`nvidia-smi nvlink -e`",
	names.GPUFabricStatus.Name:        "`nvidia-smi -q | grep -A6 -i fabric`, and the log of the fabric manager",
	names.GPUPCIeReplays.Name:         "`nvidia-smi -q | grep -i replay`",
	names.GPUPCIeWidth.Name:           "`nvidia-smi -q | grep -A12 'GPU Link Info'`, under load",
	names.GPUThrottleActive.Name:      "`nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER`",
	names.HwTemperature.Name:          "`nvidia-smi -q -d TEMPERATURE`",
	names.GPUHealthStatus.Name:        "`dcgmi health -c`",
	names.GPUNVLinkPeers.Name:         "`nvidia-smi nvlink -s`, `nvidia-smi topo -p2p n`",
}

// steps are what to do, by action, after its sentence. Actions without any have all in
// their sentence.
var steps = map[health.Action][]string{
	health.RestartFabricManager: {
		"`systemctl restart nvidia-fabricmanager` on the node, when no job spans its GPUs.",
		"If the fabric is not healthy after that, reset the GPUs, or reboot the node. " + health.ResetScope,
	},
	health.DrainP2P: {"End the work that uses several GPUs of the node: the state ends when the driver no longer asks for it."},
	health.ResetGPU: {
		"`nvidia-smi --gpu-reset -i INDEX` on the node, when nothing uses the board; or reboot the node. " + health.ResetScope,
		"If the reason is back after that, collect nvidia-bug-report.sh and contact support.",
	},
	health.DrainAndReset: {
		"Cordon the node or keep new work off the board, and wait for or end what runs there.",
		"`nvidia-smi --gpu-reset -i INDEX` on the node; or reboot it. " + health.ResetScope,
	},
	health.RestartVM:  {"Stop and start the virtual machine, so that the host gives it the board again; a reboot within it is not enough."},
	health.RebootNode: {"If the reason is back after the boot: power, cables and the seat of the board, then the vendor."},
	health.RunDiagnostics: {
		"`dcgmi diag -r 3` on the node, with nothing on the board; the field diagnostics of the vendor if it passes and the reason is back.",
		"What the diagnostics name decides. Nothing here starts them.",
	},
	health.CheckMechanics: {"Compare with the other boards of the node and the nodes beside it: one is a fan, a cable or a seat, all is the room or the power."},
	health.ContactSupport: {"Keep the kernel log of the time of the error with the report."},
	health.RMA:            {"Drain the board and leave it without work until it is replaced: a reset does not repair it."},
	health.ReadLog:        {"Look up the code in NVIDIA's XID catalogue; the event `gpu.xid` has what it recommends."},
}

// others are the commands and the steps of reasons about boards that are not NVIDIA's.
var others = map[string]struct{ look, steps []string }{
	"exporter_health": {
		look: []string{"the log of the exporter", "`amd-smi metric --ecc` on AMD", "`xpu-smi health -d INDEX` on Intel"},
		steps: []string{
			"`amd-smi ras` and AMD's validation suite (RVS) on AMD, `xpu-smi diag -d INDEX -l 3` on Intel, with nothing on the board.",
			"What the diagnostics name decides. Nothing here starts them.",
		},
	},
	"ras_fatal": {
		look: []string{"the event `gpu.ras` has the code, what it means and what to do", "`amd-smi ras --cper --severity=fatal`", "`dmesg | grep -i amdgpu`"},
		steps: []string{
			"`amd-smi reset --gpureset -g INDEX` on the node, when nothing uses the board; or reboot the node. Boards that XGMI connects are reset together.",
			"If the code is back after that, contact the vendor with the record and the kernel log.",
		},
	},
	"link_down": {
		look: []string{"`hl-smi -n link` on Gaudi", "`xpu-smi topology -m` on Intel"},
		steps: []string{
			"`hl-smi -r -d BOARD` or `xpu-smi config -d INDEX --reset` on the node, when nothing uses the boards that the link connects; or reboot the node.",
			"If the link is still down, check the seats of the boards and contact the vendor.",
		},
	},
}

// runbook is the page of a reason.
func runbook(r *board.Reason) string {
	var b strings.Builder
	b.WriteString("# " + r.Name + "\n\n")
	markdown.Wrap(&b, "", r.Doc.Means)
	b.WriteString("\n| what | of this reason |\n|---|---|\n")
	for _, row := range [][2]string{
		{"state", "`" + r.State.String() + "`"}, {"action", "`" + r.Action.String() + "`"},
		{"raised when", r.Doc.Raised}, {"cleared when", r.Doc.Cleared}, {"threshold from", r.Doc.Source},
	} {
		b.WriteString("| " + row[0] + " | " + row[1] + " |\n")
	}
	b.WriteString("\n")
	alerts := "alerts [GPUHealthFailed](GPUHealthFailed.md), [GPUHealthPredicted](GPUHealthPredicted.md) and [GPUHealthDegraded](GPUHealthDegraded.md)"
	if r == count {
		alerts = "alert [GPUBoardsMissing](GPUBoardsMissing.md)"
	}
	markdown.Wrap(&b, "", "A reason of the metric `gpu_health_reason`, of the event `gpu.health`, and of the "+alerts+". State and action are those of the reason alone; a finding may have others, and the worst reason decides about the board: [docs/health.md](../health.md).")
	list := func(title string, lines []string) {
		b.WriteString("\n## " + title + "\n\n")
		for i, line := range lines {
			markdown.Wrap(&b, strconv.Itoa(i+1)+". ", line)
		}
	}
	list("What to check", checks(r))
	further := steps[r.Action]
	if of, found := others[r.Name]; found {
		further = of.steps
	}
	do := append([]string{r.Action.Sentence()}, further...)
	if r.State != health.Failed && r.Action.NeedsFreeBoard() {
		do[0] = strings.TrimSuffix(do[0], ".") + ". The board works: that can wait until it is free."
	}
	if r.ClearedBy&board.Person != 0 {
		do = append(do, "Done, and the reason is still there: `gpuctl health clear` shows how to [acknowledge it](../health.md#how-a-reason-is-cleared).")
	}
	list("What to do", do)
	return b.String()
}

// checks are where to look: the metrics that decide, and what the driver has about them.
func checks(r *board.Reason) []string {
	var metrics, commands []string
	seen := map[string]bool{}
	for _, in := range r.Reads {
		if name := in.Metric.Prometheus(); !seen[name] {
			seen[name] = true
			metrics = append(metrics, "`"+name+"`")
		}
		if command := look[in.Metric.Name]; command != "" && !seen[command] {
			seen[command] = true
			commands = append(commands, command)
		}
	}
	if r == count {
		return []string{
			"How many there are: `nvidia-smi -L` and `lspci -d 10de:` on the node. A board that the second has and the first has not is known to the bus and not to the driver.",
			"`dmesg | grep -i nvrm` on the node: why the driver did not take a board.",
			"Whether the type of the machine is right: the label `node.kubernetes.io/instance-type` of the Node, and `health::expected` of `gpu_events`.",
		}
	}
	var all []string
	if len(metrics) > 0 {
		all = append(all, "What was read: "+strings.Join(metrics, ", ")+" of the board.")
	} else {
		all = append(all, "What happened: the events of the board, in the console on the page of its node or with `gpuctl events`.")
	}
	if strings.HasPrefix(r.Name, "xid_") && len(r.Reads) == 0 {
		commands = []string{look[names.GPUXIDLast.Name]}
	}
	if of, found := others[r.Name]; found {
		commands = of.look
	}
	if len(commands) == 0 {
		commands = []string{"`nvidia-smi -q` for the board"}
	}
	all = append(all, "On the node: "+strings.Join(commands, "; ")+".")
	return append(all, "Other reasons against the board: `gpu_health_reason == 1`. One cause may have several.")
}
