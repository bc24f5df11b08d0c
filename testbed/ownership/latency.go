// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Latencies are the times from a container's placement to the first point of
// telemetry that names it as its device's owner, sorted.
type Latencies struct {
	Reported []time.Duration // to the point's own time
	Arrived  []time.Duration // to its arrival: with what batches and the wire take
	Worst    Placement       // of the longest of Reported
}

// Latency measures them. A placement that no point names is not in it.
func Latency(points []Point, placements []Placement) Latencies {
	type key struct {
		device string
		owner  Owner
	}
	named := map[key][]*Point{}
	for i := range points {
		p := &points[i]
		if p.Device == "" || p.Ended || p.Metric == names.GPUAllocation.Name || (p.Owner == Owner{}) {
			continue
		}
		k := key{p.Device, p.Owner}
		k.owner.UID = ""
		named[k] = append(named[k], p)
	}
	var l Latencies
	for _, placement := range placements {
		k := key{placement.Device, placement.Owner}
		k.owner.UID = ""
		for _, p := range named[k] { // in the order of arrival
			if !p.Time.Before(placement.At) {
				reported := p.Time.Sub(placement.At)
				if len(l.Reported) == 0 || reported > slices.Max(l.Reported) {
					l.Worst = placement
				}
				l.Reported = append(l.Reported, reported)
				l.Arrived = append(l.Arrived, p.Arrived.Sub(placement.At))
				break
			}
		}
	}
	slices.Sort(l.Reported)
	slices.Sort(l.Arrived)
	return l
}

// In returns median and maximum, also as a multiple of an interval.
func (l Latencies) In(interval time.Duration) string {
	n := len(l.Reported)
	if n == 0 {
		return "first attributed point: no placement"
	}
	of := func(d []time.Duration) string {
		median, largest := d[n/2], d[n-1]
		return fmt.Sprintf("median %.2f s (%.2f), max %.2f s (%.2f)",
			median.Seconds(), float64(median)/float64(interval), largest.Seconds(), float64(largest)/float64(interval))
	}
	return fmt.Sprintf("first attributed point after placement, in brackets as a multiple of poll + collection (%v): its time %s; its arrival %s; %d placements, the slowest on node %s",
		interval, of(l.Reported), of(l.Arrived), n, l.Worst.Node)
}
