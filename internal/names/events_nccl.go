// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package names

// Names of the events of nccl.
const (
	EventNCCLStraggler = "nccl.straggler"
	EventNCCLStall     = "nccl.stall"
)

// Attributes of events of nccl.
const (
	NCCLStallState  = "nccl.stall.state"  // suspected, or confirmed: the devices spin
	NCCLLateRatio   = "nccl.late.ratio"   // of the collectives of the window, to which it came last
	NCCLLateness    = "nccl.lateness"     // on average, of those; seconds
	NCCLWaitShare   = "nccl.wait.ratio"   // time in collectives that all ranks waited, as a fraction
	NCCLHeldDevices = "nccl.devices.held" // by the job that stalls
)

// Values of nccl.stall.state.
const (
	StallSuspected = "suspected"
	StallConfirmed = "confirmed"
)
