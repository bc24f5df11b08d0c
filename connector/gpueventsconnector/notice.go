// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// notice is something that happens and is not cleared. While it happens again
// and again it is told every repeatAfter, with how often it happened since.
type notice struct {
	told   pcommon.Timestamp // when it was last told; 0: never
	untold int64
}

// happened counts n more at the time at.
func (n *notice) happened(count int64) { n.untold += count }

// clockAhead is by how much a notice may be newer than its device: one that is newer by
// more has its time from a clock that was ahead, and was set since.
const clockAhead = time.Minute

// forget drops the time of a notice that is not of the clock that now counts.
func (n *notice) forget(at pcommon.Timestamp) {
	if n.told > later(at, clockAhead) {
		n.told = 0
	}
}

// due is when it may be told again, and with untold is told then.
func (n *notice) due(repeatAfter time.Duration) pcommon.Timestamp {
	if n.told == 0 {
		return 0
	}
	return later(n.told, repeatAfter)
}

// ready reports whether it is to be told at the time at.
func (n *notice) ready(at pcommon.Timestamp, repeatAfter time.Duration) bool {
	return n.untold > 0 && at >= n.due(repeatAfter)
}

// tell notes that it was told at the time at.
func (n *notice) tell(at pcommon.Timestamp) { n.told, n.untold = at, 0 }

// counter is the last reading of a counter.
type counter struct {
	known bool
	value float64
}

// rise is by how much the counter rose since its last reading. The first reading
// and one that is smaller, as after a reset, are no rise.
func (c *counter) rise(value float64) (by float64) {
	if c.known && value > c.value {
		by = value - c.value
	}
	c.known, c.value = true, value
	return by
}
