// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package ras has what the error codes of AMD Instinct boards mean for people: what
// happened, and what to do.
//
// The code (AFID, AMD field ID) is what the driver and its tools make of an error record
// (CPER) of the board. Numbers, parts and severities are those of the vendor's list (AMD
// document 70122); the sentences, and what to do, are this project's own: the list has none.
package ras

import (
	"fmt"
	"sort"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
)

// Severity is how bad an error is, as a value of gpu.ras.severity.
type Severity string

// The severities of error records.
const (
	// Fatal: the board cannot go on before a reset.
	Fatal Severity = "fatal"
	// Uncorrected: data was lost, and the board goes on.
	Uncorrected Severity = "non_fatal_uncorrected"
	// Corrected: nothing was lost.
	Corrected Severity = "non_fatal_corrected"
	// Any is that of codes that come with each of the others.
	Any Severity = ""
)

// Category is the part of the board that an error is about.
type Category string

// The categories.
const (
	Firmware Category = "firmware"
	Memory   Category = "memory"
	// Package is a link between the dies of one board.
	Package Category = "package_link"
	PCIe    Category = "pcie"
	XGMI    Category = "xgmi"
	WAFL    Category = "wafl"
	// Chip is everything else inside the board.
	Chip Category = "chip"
	// Record: the record itself could not be read.
	Record  Category = "record"
	Unknown Category = "unknown"
)

// MaxText is the longest meaning and the longest action, in bytes.
const MaxText = 200

// Entry is what is known of one code.
type Entry struct {
	Code     int
	Category Category
	Severity Severity
	// Meaning is one sentence about what happened.
	Meaning string
	// Do is what to do about it.
	Do string
	// Action is Do in one word.
	Action health.Action
}

// ReasonFatal is the value of gpu.health.reason that a fatal code raises.
const ReasonFatal = "ras_fatal"

// Lookup returns the entry of a code that was reported with a severity. A code that the
// list does not have gives false and an entry that states just that, fit to be shown.
func Lookup(code int, severity Severity) (Entry, bool) {
	i := sort.Search(len(catalogue), func(i int) bool { return catalogue[i].Code >= code })
	if i < len(catalogue) && catalogue[i].Code == code {
		e := catalogue[i]
		if e.Severity == Any {
			e.Severity, e.Action = severity, actionOf(severity)
		}
		return e, true
	}
	return Entry{
		Code: code, Category: Unknown, Severity: severity, Action: actionOf(severity),
		Meaning: fmt.Sprintf("AFID %d is not in the list that this version knows.", code),
		Do:      "Look the code up in AMD's current list of AFIDs (document 70122).",
	}, false
}

// actionOf is the action of a code of which no more is known than its severity.
func actionOf(s Severity) health.Action {
	switch s {
	case Fatal:
		return health.ResetGPU
	case Uncorrected:
		return health.RestartApp
	}
	return health.None
}

// Known reports whether a text is a severity that pages have.
func (s Severity) Known() bool { return s == Fatal || s == Uncorrected || s == Corrected }

// Codes returns every code of the list, ascending.
func Codes() []int {
	codes := make([]int, len(catalogue))
	for i := range catalogue {
		codes[i] = catalogue[i].Code
	}
	return codes
}
