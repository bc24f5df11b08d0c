// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package xid

import (
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
)

// unit is a part of the NVLink hardware with a code for its errors, and what each of them
// asks for: the rules of the vendor's catalogue for codes 144 to 150.
type unit struct {
	code  int
	names []string // in the kernel log
	// Bits of the error status, of which several can be set. What is in none of them
	// has no rule.
	ignore, evaluate, reset uint32
	// status has the rules of a unit with one value as error status, subcode those of a
	// unit with errors that differ in bits 20 to 25 of the first word.
	status, subcode map[uint32]Bucket
}

// software is the bit that every unit sets for errors that software reports.
const software = 1 << 31

var units = []unit{
	{code: 144, names: []string{"SAW_MVB"}, ignore: 0x2d, reset: 0x12},
	{code: 145, names: []string{"RLW_CTRL"}, ignore: software},
	{code: 145, names: []string{"RLW_REMAP"}, ignore: software | 0x300, evaluate: 0x3f, reset: 0xc0},
	{code: 145, names: []string{"RLW_RSPCOL"}, ignore: software | 1, reset: 2},
	{code: 145, names: []string{"RLW_RXPIPE"}, ignore: software | 0xf},
	{code: 145, names: []string{"RLW_SRC_TRACK"}, ignore: software | 2, evaluate: 0xc, reset: 0x31},
	{code: 145, names: []string{"RLW_TAGSTATE"}, ignore: software | 0x10001, reset: 0x120002},
	{code: 146, names: []string{"TLW_CTRL"}, ignore: software | 3, reset: 4},
	{code: 146, names: []string{"TLW_RX", "TLW_RX_PIPE0", "TLW_RX_PIPE1"}, ignore: software | 3, reset: 4},
	{code: 146, names: []string{"TLW_TX", "TLW_TX_PIPE0", "TLW_TX_PIPE1"}, ignore: software | 3, reset: 4},
	{code: 147, names: []string{"TREX"}, ignore: software | 1},
	{code: 148, names: []string{"NVLPW_CTRL", "NVLPW"}, ignore: software},
	{code: 149, names: []string{"NETIR", "NETIR_INT"}, status: values(ResetGPU, 0)},
	{code: 149, names: []string{"NETIR_BER_EVENT"}, status: values(Ignore, 0, 1, 2, 3)},
	{
		code: 149, names: []string{"NETIR_LINK_EVT", "NETIR_LINK_DOWN"},
		subcode: with(values(ResetGPU, 0, 1, 2, 4, 10, 15, 16, 17, 18, 21, 22, 32, 33, 34, 35, 36, 37, 42, 43), Ignore, 38, 40),
	},
	{code: 149, names: []string{"NETIR_MFDE_EVENT"}, status: with(values(ResetGPU, 1, 4, 5, 7), Ignore, 3)},
	{code: 150, names: []string{"MSE_WATCHDOG"}, status: values(ResetGPU, 0)},
}

func values(b Bucket, of ...uint32) map[uint32]Bucket { return with(map[uint32]Bucket{}, b, of...) }

func with(rules map[uint32]Bucket, b Bucket, of ...uint32) map[uint32]Bucket {
	for _, value := range of {
		rules[value] = b
	}
	return rules
}

// NVLink returns what the rules of the vendor's catalogue ask for about an error of codes
// 144 to 150, by the name of the hardware unit and the first two words of its line:
// Ignore, ResetGPU, or RecoveryAction where the XID 154 beside it decides. Where several
// bits of the status are set, the heaviest rule counts. ok is false where no rule fits.
func NVLink(code int, name string, info, status uint32) (b Bucket, ok bool) {
	i := slices.IndexFunc(units, func(u unit) bool { return u.code == code && slices.Contains(u.names, name) })
	if i < 0 {
		return Undecided, false
	}
	switch u := &units[i]; {
	case u.status != nil:
		b, ok = u.status[status]
		return b, ok
	case u.subcode != nil:
		b, ok = u.subcode[info>>20&0x3f]
		return b, ok && status == 0
	case status&u.reset != 0:
		return ResetGPU, true
	case status&u.evaluate != 0:
		return RecoveryAction, true
	case status&u.ignore != 0 && status&^u.ignore == 0:
		return Ignore, true
	}
	return Undecided, false
}

// linkHealth is what a rule for an NVLink error means for the board.
func linkHealth(b Bucket) Health {
	switch b {
	case ResetGPU:
		return Health{ReasonLink, health.Failed, health.ResetGPU}
	case RecoveryAction: // until the line of XID 154 is there
		return Health{ReasonLink, health.Degraded, health.ReadLog}
	}
	return Health{}
}
