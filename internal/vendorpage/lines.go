// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package vendorpage reads one page of a vendor's exporter as its receiver does, to find
// the cause of a gap: what is on the page, and which settings of the exporter are missing
// for what otelcol-gpu shows and watches.
package vendorpage

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

const maxCause = 300 // bytes of an error that are reported

// Lines are what became of a page's lines, whatever they are about.
type Lines struct {
	// Outcome is OK for a page that gives the receiver at least one device. Why has the
	// evidence of any other.
	Outcome fetch.Outcome
	Why     string
	// Rows are all samples.
	Rows int
	// Unparsable are lines that are no samples, Cause is about the first, and LineRemedy
	// what to do about it.
	Unparsable        int
	Cause, LineRemedy string
	// Repeated are samples of a series that the page had already, and TooLong those
	// over a limit of a line, of which LongCause is about the first.
	Repeated, TooLong int
	LongCause         string
	// OverLimit names the limit of the receiver that the page is over, if it is over
	// one: Beyond samples are left out for it, and OverRemedy is what to do.
	OverLimit, OverRemedy string
	Beyond                int
	// Doubt is the family with a unit about which the page contradicts itself, and how;
	// DoubtRemedy is what to do, and Doubtful how many samples are left out.
	Doubt, DoubtRemedy string
	Doubtful           int
	// RepeatedRemedy and LongRemedy are what to do about Repeated and TooLong.
	RepeatedRemedy, LongRemedy string
	// Unknown are fields that may have a quantity which the page lacks, and Unrecognized is a
	// page of which no field is known to be the utilization, memory or power of a device.
	Unknown       []devicemap.Unknown
	Unrecognized  bool
	UnknownRemedy string
}

// ReadLines reads a page, and returns its rows and what they become. An error is a page
// that the receiver refuses, see fetch.Failed.
func ReadLines(e *fetch.Exporter, v *devicemap.Vendor, text []byte, o pagetext.Options) (Lines, []devicemap.Row, devicemap.Result, error) {
	rows, read, err := pagetext.NewReader(v, o).Read(text, nil)
	if err != nil {
		return Lines{}, nil, devicemap.Result{}, err
	}
	result := devicemap.NewTarget(v, devicemap.Options{OTel: true}).Map(
		&devicemap.Page{Up: true, Rows: rows, Samples: read.Samples, Refused: read.Refused, Over: read.Over}, devicemap.Exporter{})
	l := Lines{
		Outcome: e.Lacking(result.Lack), Why: result.Why, Rows: read.Samples,
		Unparsable: read.Refused[devicemap.Unparsable], Cause: shortCause(read.Bad),
		Repeated: read.Refused[devicemap.Repeated], TooLong: read.TooLong, LongCause: shortCause(read.Long),
		OverLimit: string(result.Over), OverRemedy: e.OverRemedy(result.Over), Beyond: result.Refused[devicemap.Limit] - read.TooLong,
		RepeatedRemedy: e.Repeated, LongRemedy: e.Long,
		Doubt: result.Doubt, DoubtRemedy: e.Doubt, Doubtful: result.Refused[devicemap.Ambiguous],
		Unknown: result.Unknown, Unrecognized: result.Unrecognized, UnknownRemedy: e.UnknownRemedy(),
	}
	if read.Bad != nil {
		l.LineRemedy = e.LineRemedy(read.Bad)
	}
	return l, rows, result, nil
}

func shortCause(err error) string {
	if err == nil {
		return ""
	}
	return safetext.Strip(err.Error(), maxCause)
}
