// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// clockAhead is by how much a notice may be newer than its device. One that is newer
// by more got its time from a clock that was ahead and has been set since.
const clockAhead = time.Minute

// Notice is something that happens and is not cleared. While it happens again and
// again it is reported once in repeatAfter, with the number of occurrences.
type Notice struct {
	reported pcommon.Timestamp // the time of the last report; 0: never
	Pending  int64             // occurrences that are not reported yet
}

// Happened counts occurrences.
func (n *Notice) Happened(count int64) { n.Pending += count }

// Due is the time from which on pending occurrences may be reported. A report from a
// clock that was ahead of the device's time at counts for nothing.
func (n *Notice) Due(at pcommon.Timestamp, repeatAfter time.Duration) pcommon.Timestamp {
	if n.reported > later(at, clockAhead) {
		n.reported = 0
	}
	if n.reported == 0 {
		return 0
	}
	return later(n.reported, repeatAfter)
}

// Report notes that all pending occurrences are reported at the time at.
func (n *Notice) Report(at pcommon.Timestamp) { n.reported, n.Pending = at, 0 }

// Counter is the last reading of a counter.
type Counter struct {
	Known bool
	Value float64
}

// Rise is by how much the counter rose since its last reading. The first reading
// and a smaller one, as after a reset, are no rise.
func (c *Counter) Rise(value float64) (by float64) {
	if c.Known && value > c.Value {
		by = value - c.Value
	}
	c.Known, c.Value = true, value
	return by
}
