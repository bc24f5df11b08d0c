// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package kernellog finds what the driver has written to the kernel log among log records,
// as a journald or a filelog receiver brings them.
package kernellog

import (
	"cmp"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/internal/xid"
)

// MaxPerSecond is how many lines with a code are read in a second. A job that fails may
// write thousands of lines for each of its processes.
const MaxPerSecond = 1000

// Outcome is what became of a line: a value of the attribute of
// otelcol_gpu_events_kernel_lines.
type Outcome string

const (
	// Used lines have an XID of a GPU that is known.
	Used Outcome = "used"
	// Old lines are from before the first page of their GPU.
	Old Outcome = "old"
	// UnknownGPU lines have the address of none that is known on the node.
	UnknownGPU Outcome = "unknown_gpu"
	// Duplicate lines were read before: a line about the same code of the same GPU with
	// their time or a later one.
	Duplicate Outcome = "duplicate"
	// Switch lines have an SXid of an NVSwitch.
	Switch Outcome = "switch"
	// Other lines have no code.
	Other Outcome = "other"
	// Invalid lines begin like one with a code and have none, or are too long.
	Invalid Outcome = "invalid"
	// Refused lines are more than MaxPerSecond, or of more codes than a GPU may have.
	Refused Outcome = "refused"
)

// Line is a line with the XID of a GPU.
type Line struct {
	xid.Line
	Node string            // or host, that the line is from; empty: not known
	At   pcommon.Timestamp // never later than when it was read
}

// Reader reads log records. The zero Reader has read none.
type Reader struct {
	second int64 // since 1970
	taken  int   // lines with a code in it
	counts map[Outcome]int64
}

// Count counts a line.
func (r *Reader) Count(o Outcome) {
	if r.counts == nil {
		r.counts = map[Outcome]int64{}
	}
	r.counts[o]++
}

// TakeCounts returns how many lines there were of each outcome since the last call.
func (r *Reader) TakeCounts() map[Outcome]int64 {
	c := r.counts
	r.counts = nil
	return c
}

// Read returns the lines with an XID of a GPU, in their order, and counts all others.
func (r *Reader) Read(logs plog.Logs, now time.Time) (lines []Line) {
	if second := now.Unix(); second != r.second {
		r.second, r.taken = second, 0
	}
	for _, rl := range logs.ResourceLogs().All() {
		resource := rl.Resource().Attributes()
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				text, host := textOf(record.Body())
				switch {
				case xid.KindOf(text) == xid.Other:
					r.Count(Other)
					continue
				case r.taken >= MaxPerSecond:
					r.Count(Refused)
					continue
				}
				r.taken++
				switch l := xid.Parse(text); l.Kind {
				case xid.Switch:
					r.Count(Switch)
				case xid.Invalid:
					r.Count(Invalid)
				default:
					at := pcommon.NewTimestampFromTime(now)
					lines = append(lines, Line{
						Line: bounded(l),
						Node: event.Bounded(cmp.Or(nodeOf(resource), nodeOf(record.Attributes()), host)),
						At:   min(at, cmp.Or(record.Timestamp(), record.ObservedTimestamp(), at)),
					})
				}
			}
		}
	}
	return lines
}

func nodeOf(attrs pcommon.Map) string {
	return cmp.Or(points.Str(attrs, names.K8sNodeName), points.Str(attrs, names.HostName))
}

// textOf is the text of a record, and the host that it names: the record is the text, or an
// entry of the journal, into which others than the kernel write too.
func textOf(body pcommon.Value) (text, host string) {
	switch body.Type() {
	case pcommon.ValueTypeStr:
		return body.Str(), ""
	case pcommon.ValueTypeMap:
		if from := points.Str(body.Map(), "_TRANSPORT"); from != "" && from != "kernel" {
			return "", ""
		}
		return points.Str(body.Map(), "MESSAGE"), points.Str(body.Map(), "_HOSTNAME")
	}
	return "", ""
}

// bounded copies what a Line keeps of its text, which may be part of a larger one.
func bounded(l xid.Line) xid.Line {
	l.PCI, l.Process = strings.Clone(l.PCI), event.Bounded(event.Clean(strings.Clone(l.Process)))
	return l
}
