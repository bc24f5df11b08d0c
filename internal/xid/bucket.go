// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package xid

import "github.com/otelcol-gpu/otelcol-gpu/internal/health"

// Bucket is the immediate resolution of a code in the vendor's catalogue
// (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html).
type Bucket string

// The buckets of the catalogue.
const (
	Ignore           Bucket = "IGNORE"
	RestartApp       Bucket = "RESTART_APP"
	ResetGPU         Bucket = "RESET_GPU"
	RestartNode      Bucket = "RESTART_BM"
	RestartVM        Bucket = "RESTART_VM"
	CheckMechanicals Bucket = "CHECK_MECHANICALS"
	CheckUVM         Bucket = "CHECK_UVM"
	UpdateSoftware   Bucket = "UPDATE_SWFW"
	ContactSupport   Bucket = "CONTACT_SUPPORT"
	WorkflowXID45    Bucket = "WORKFLOW_XID_45"
	WorkflowXID48    Bucket = "WORKFLOW_XID_48"
	WorkflowNVLink   Bucket = "WORKFLOW_NVLINK_ERR"
	WorkflowNVLink5  Bucket = "WORKFLOW_NVLINK5_ERR"
	// RecoveryAction is that of XID 154: its line has the action.
	RecoveryAction Bucket = "XID_154"
	// Undecided is that of codes for which the catalogue has no resolution yet.
	Undecided Bucket = ""
)

// Health is what a code means for the board that it is about.
type Health struct {
	// Reason is the value of gpu.health.reason; empty: the code is no reason against
	// the board.
	Reason string
	State  health.State // OK without a reason
	Action health.Action
}

// The values of gpu.health.reason that a code can raise.
const (
	ReasonReset     = "xid_reset"
	ReasonRestart   = "xid_restart"
	ReasonLink      = "xid_link"
	ReasonMechanics = "xid_mechanics"
	ReasonSoftware  = "xid_software"
	ReasonSupport   = "xid_support"
)

// Health returns what the code alone means, without its line of the kernel log. A code
// without a resolution counts by its severity: a fatal one as a code that asks for a
// reset.
func (e Entry) Health() Health {
	switch e.Bucket {
	case RestartApp:
		return Health{Action: health.RestartApp}
	case ResetGPU, WorkflowXID48:
		return Health{ReasonReset, health.Failed, health.ResetGPU}
	case RestartNode:
		return Health{ReasonRestart, health.Failed, health.RebootNode}
	case RestartVM:
		return Health{ReasonRestart, health.Failed, health.RestartVM}
	case CheckMechanicals:
		return Health{ReasonMechanics, health.Degraded, health.CheckMechanics}
	case UpdateSoftware:
		return Health{ReasonSoftware, health.Degraded, health.UpdateSoftware}
	case ContactSupport, CheckUVM:
		return Health{ReasonSupport, health.Degraded, health.ContactSupport}
	case WorkflowNVLink, WorkflowNVLink5:
		return Health{ReasonLink, linkState(e.Code), health.ReadLog}
	case Undecided:
		if e.Severity == Fatal {
			return Health{ReasonReset, health.Failed, health.ResetGPU}
		}
	}
	return Health{}
}

// linkState is the state that an NVLink code means where its line is not known: most
// lines of 149 and all of 150 ask for a reset, as 74 does, and few of the others.
func linkState(code int) health.State {
	switch code {
	case 74, 149, 150:
		return health.Failed
	}
	return health.Degraded
}
