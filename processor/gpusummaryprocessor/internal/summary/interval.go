// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"slices"
	"time"
)

const (
	// Outage is the longest gap between two points that can be an interval.
	Outage = 6 * time.Minute
	// leastGaps is the number of gaps from which an interval is computed.
	leastGaps = 3
	// lastGaps is the number of gaps of one device that count.
	lastGaps = 5
)

// recent is the set of a device's newest point times, newest first; 0 is none. It
// is kept sorted so that a point that arrives late splits the gap it lies in.
type recent [lastGaps + 1]int64

func (r *recent) add(t int64) {
	i := 0
	for i < len(r) && r[i] > t {
		i++
	}
	if i == len(r) || r[i] == t {
		return
	}
	copy(r[i+1:], r[i:])
	r[i] = t
}

// appendGaps appends the gaps between the times, outages left out.
func (r *recent) appendGaps(gaps []int64) []int64 {
	for i := 1; i < len(r) && r[i] != 0; i++ {
		if gap := r[i-1] - r[i]; gap <= int64(Outage) {
			gaps = append(gaps, gap)
		}
	}
	return gaps
}

// median of values, which it sorts: of an even number, the mean of the two in the
// middle. values must not be empty.
func median(values []int64) int64 {
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 1 {
		return values[half]
	}
	return values[half-1] + (values[half]-values[half-1])/2
}

// Flapping is a service with points so rare that the configured staleness makes
// them old in between: its pods are missing and back again. The zero value is none.
type Flapping struct {
	Namespace, Service string
	Interval           time.Duration // between two points of a device
}
