// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package xid has what the NVIDIA driver's XID codes mean for people: what
// happened, whether the work on the GPU is over, and what to do.
//
// An XID is a number that the driver writes to the kernel log when something
// went wrong on a GPU. Names and resolutions are those of the vendor's
// catalogue; the sentences are this project's own. The code alone does not
// always decide: where the kernel log line has more, the entry states that.
package xid

import (
	"fmt"
	"sort"
)

// Severity is how much a code matters to the one who runs the GPU.
type Severity string

// What each severity promises.
const (
	// Info: nothing is wrong, or the driver has already fixed it.
	Info Severity = "info"
	// Warn: the GPU continues to work; it should be examined.
	Warn Severity = "warn"
	// Error: work was lost or a repair failed; the GPU itself can be used.
	Error Severity = "error"
	// Fatal: the GPU cannot be relied on before a reset, a restart or a repair.
	Fatal Severity = "fatal"
)

// MaxText is the longest meaning and the longest action, in bytes.
const MaxText = 200

// Entry is what is known of one code.
type Entry struct {
	Code int
	// Mnemonic is the driver's own name of the code.
	Mnemonic string
	// Meaning is one sentence about what happened.
	Meaning string
	// Action is what to do about it.
	Action string
	// Fatal is whether the workload that ran on the GPU is over. Where only the
	// kernel log line decides, it is false and Meaning states that.
	Fatal    bool
	Severity Severity
	// Bucket is what the vendor's catalogue asks for at first.
	Bucket Bucket
}

// Lookup returns the entry of a code. A code that the catalogue does not have
// gives false and an entry that states just that, fit to be shown: its severity
// is Warn and its Mnemonic is empty.
func Lookup(code int) (Entry, bool) {
	i := sort.Search(len(catalogue), func(i int) bool { return catalogue[i].Code >= code })
	if i < len(catalogue) && catalogue[i].Code == code {
		return catalogue[i], true
	}
	return Entry{
		Code:     code,
		Meaning:  fmt.Sprintf("XID %d is not in the catalogue that this version knows.", code),
		Action:   "Look the code up in the driver vendor's current XID catalogue.",
		Severity: Warn,
	}, false
}

// Codes returns every code of the catalogue, ascending.
func Codes() []int {
	codes := make([]int, len(catalogue))
	for i, e := range catalogue {
		codes[i] = e.Code
	}
	return codes
}
