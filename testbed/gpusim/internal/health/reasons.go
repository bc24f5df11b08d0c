// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "slices"

// The reasons against a board.
const (
	recoveryAction = iota
	xidReset
	xidRestart
	xidLink
	xidMechanics
	xidSoftware
	xidSupport
	xidRepeated
	eccUncorrected
	remapPending
	remapFailed
	remapWorn
	sramWorn
	pagesWorn
	nvlinkErrors
	nvlinkDown
	fabric
	pcieReplays
	pcieWidth
	throttle
	temperature
	lost
	dcgmWatch
	recurring
	count
)

var names = [count]string{
	"recovery_action", "xid_reset", "xid_restart", "xid_link", "xid_mechanics", "xid_software", "xid_support", "xid_repeated",
	"ecc_uncorrected", "remap_pending", "remap_failed", "remap_worn", "sram_worn", "pages_worn", "nvlink_errors", "nvlink_down",
	"fabric", "pcie_replays", "pcie_width", "throttle", "temperature", "lost", "dcgm_watch", "recurring",
}

// Reasons are the names of all reasons against a board.
func Reasons() []string { return slices.Clone(names[:]) }

type state uint8

// The states, the best first.
const (
	ok state = iota
	degraded
	predicted
	failed
)

var states = [...]string{"ok", "degraded", "predicted_failure", "failed"}

type action uint8

// The actions, the lightest first.
const (
	none action = iota
	checkApp
	restartApp
	readLog
	updateSoftware
	restartFabricManager
	drainP2P
	resetGPU
	drainAndReset
	restartVM
	rebootNode
	runDiagnostics
	checkMechanics
	contactSupport
	rma
)

var actions = [...]string{
	"none", "check_app", "restart_app", "read_log", "update_software", "restart_fabric_manager", "drain_p2p", "reset_gpu",
	"drain_and_reset", "restart_vm", "reboot_node", "run_diagnostics", "check_mechanics", "contact_support", "rma",
}

// evidence of a board that ends reasons.
type evidence uint8

const (
	reset evidence = 1 << iota
	boot
	driver
	person
)

// ends are what ends a reason beside its own value, and after how many quiet seconds it
// ends without.
var ends = [count]struct {
	by    evidence
	quiet int64
}{
	xidReset:       {by: reset | boot | person},
	xidRestart:     {by: boot | person},
	xidLink:        {by: reset | boot | person},
	xidMechanics:   {by: person, quiet: day},
	xidSoftware:    {by: driver | person},
	xidSupport:     {by: reset | boot | person},
	xidRepeated:    {by: person, quiet: day},
	eccUncorrected: {by: reset | boot | driver | person},
	recurring:      {by: person, quiet: week},
}

// Codes for which the vendor's catalogue has the same resolution.
var (
	resets   = []int{46, 48, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158}
	supports = []int{
		1, 2, 3, 4, 5, 6, 7, 9, 10, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 27, 28, 29, 30, 33, 34, 35, 36, 42, 47, 49, 50, 51, 52,
		53, 55, 56, 57, 58, 59, 61, 65, 73, 81, 87, 90, 91, 111, 112, 113, 114, 115, 116, 117, 118, 122, 123, 124, 125, 138, 142, 159,
	}
)

// ofCode is what a code means for the board; count: nothing.
func ofCode(code int) (reason int, s state, a action) {
	switch {
	case slices.Contains(resets, code):
		return xidReset, failed, resetGPU
	case code == 79:
		return xidRestart, failed, rebootNode
	case code == 151:
		return xidRestart, failed, restartVM
	case code == 74, code == 149, code == 150:
		return xidLink, failed, readLog
	case code >= 144 && code <= 148:
		return xidLink, degraded, readLog
	case code == 54:
		return xidMechanics, degraded, checkMechanics
	case code == 78:
		return xidSoftware, degraded, updateSoftware
	case slices.Contains(supports, code):
		return xidSupport, degraded, contactSupport
	}
	return count, ok, none
}

// recoveries are the states and actions of the driver's recovery action, by its value.
var recoveries = [...]struct {
	state  state
	action action
}{{ok, none}, {failed, resetGPU}, {failed, rebootNode}, {degraded, drainP2P}, {failed, drainAndReset}, {failed, rebootNode}, {failed, rebootNode}, {failed, restartVM}}

// replaysPerLane are the replays a minute that a lane may have, by generation from 1.
var replaysPerLane = [...]float64{.15, .3, .48, .96, 1.92, 3.84}
