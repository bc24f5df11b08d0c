// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package health has the words in which the health of a GPU is reported: its states,
// and the actions that they ask for.
package health

import (
	"fmt"
	"slices"
)

// State is the health of a board or a node. A larger state is worse. A board about which
// nothing is known has none.
type State uint8

const (
	// OK: no reason is active.
	OK State = iota
	// Degraded: it works, but slower, or it needs a reset when it is free.
	Degraded
	// PredictedFailure: it works; wear or repetition predicts that it will fail.
	PredictedFailure
	// Failed: results, memory or the bus cannot be relied on before the action.
	Failed
)

// states are the values of hw.state, by State.
var states = [...]string{"ok", "degraded", "predicted_failure", "failed"}

// States returns every state, the best first.
func States() []State { return []State{OK, Degraded, PredictedFailure, Failed} }

// String returns the state as a value of hw.state.
func (s State) String() string {
	if int(s) < len(states) {
		return states[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// ParseState returns the state with this value of hw.state.
func ParseState(value string) (State, bool) {
	i := slices.Index(states[:], value)
	return State(max(i, 0)), i >= 0
}

// Action is what people should do about a reason. A larger action is heavier, and makes
// the smaller ones unnecessary.
type Action uint8

// The actions, as values of gpu.health.action, the lightest first.
const (
	None Action = iota
	CheckApp
	RestartApp
	ReadLog
	UpdateSoftware
	RestartFabricManager
	DrainP2P
	ResetGPU
	DrainAndReset
	RestartVM
	RebootNode
	RunDiagnostics
	CheckMechanics
	ContactSupport
	RMA
)

var actions = [...]struct{ value, sentence string }{
	None:                 {"none", "Nothing to do."},
	CheckApp:             {"check_app", "Look for the fault in the application."},
	RestartApp:           {"restart_app", "Restart the application."},
	ReadLog:              {"read_log", "Read the kernel log line of the code: it has what to do."},
	UpdateSoftware:       {"update_software", "Update the driver or the firmware."},
	RestartFabricManager: {"restart_fabric_manager", "Restart the fabric manager; if it does not help, reset the GPU."},
	DrainP2P:             {"drain_p2p", "End the work that reaches this GPU from other GPUs."},
	ResetGPU:             {"reset_gpu", "Reset the GPU."},
	DrainAndReset:        {"drain_and_reset", "Drain the GPU, then reset it."},
	RestartVM:            {"restart_vm", "Restart the virtual machine."},
	RebootNode:           {"reboot_node", "Drain the node, then reboot it."},
	RunDiagnostics:       {"run_diagnostics", "Run the vendor's diagnostics on the GPU when it is free."},
	CheckMechanics:       {"check_mechanics", "Check power, cooling, cables and the seat of the board."},
	ContactSupport:       {"contact_support", "Collect nvidia-bug-report.sh and contact support."},
	RMA:                  {"rma", "Run the field diagnostics, then have the board replaced."},
}

// Actions returns every action, the lightest first.
func Actions() []Action {
	all := make([]Action, len(actions))
	for i := range all {
		all[i] = Action(i)
	}
	return all
}

// String returns the action as a value of gpu.health.action.
func (a Action) String() string {
	if int(a) < len(actions) {
		return actions[a].value
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// Sentence returns the action in words for people.
func (a Action) Sentence() string {
	if int(a) < len(actions) {
		return actions[a].sentence
	}
	return ""
}

// NeedsFreeBoard reports whether the action ends the work of everything that uses the
// board.
func (a Action) NeedsFreeBoard() bool { return a >= DrainP2P }

// ResetScope is what people have to know before they reset a GPU.
const ResetScope = "A reset ends the work of every owner of the board: all its MIG instances and all pods that share it. On some NVLink systems it takes the boards that are connected to it too: `nvidia-smi topo -m` shows them, and NVIDIA's documentation of the system has whether they can be reset one by one."

// ParseAction returns the action with this value of gpu.health.action.
func ParseAction(value string) (Action, bool) {
	for i := range actions {
		if actions[i].value == value {
			return Action(i), true
		}
	}
	return None, false
}

// Recovery returns the state and the action that a value of the driver's recovery action
// means (NVML's nvmlDeviceGpuRecoveryAction_t, DCGM's field 1523, the line of XID 154).
// known is false for a value that this version does not know: the board is then degraded,
// and the log has more.
func Recovery(value int64) (s State, a Action, known bool) {
	switch value {
	case 0:
		return OK, None, true
	case 1:
		return Failed, ResetGPU, true
	case 2:
		return Failed, RebootNode, true
	case 3:
		return Degraded, DrainP2P, true
	case 4:
		return Failed, DrainAndReset, true
	case 5, 6: // the IMEX domain; the bus: a reset of the GPU alone does not help
		return Failed, RebootNode, true
	case 7:
		return Failed, RestartVM, true
	}
	return Degraded, ReadLog, false
}
