// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import "time"

// clock returns the wall clock's time and the time since some fixed moment.
type clock func() (wall time.Time, monotonic time.Duration)

// systemClock reads this machine's clocks.
func systemClock() clock {
	base := time.Now()
	return func() (time.Time, time.Duration) {
		now := time.Now()
		return now.Round(0), now.Sub(base) // Round drops the monotonic reading
	}
}
