// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"time"
)

// fresh: "A point is fresh at evaluation time t when its own timestamp is within
// staleness of t."
func fresh(p point, t, staleness at) bool {
	return !p.end && t-p.stamp <= staleness
}

// newest is the point that counts of a series: the one with the newest timestamp.
// "NoRecordedValue points and NaN end a series at once": an end is a point like the
// others. Reading: of points at one time the greatest value, and any value rather
// than an end, because the order of arrival must not matter.
func newest(points []point) (point, bool) {
	if len(points) == 0 {
		return point{}, false
	}
	best := points[0]
	for _, p := range points[1:] {
		switch {
		case p.stamp != best.stamp:
			if p.stamp > best.stamp {
				best = p
			}
		case p.end:
		case best.end || p.value > best.value:
			best = p
		}
	}
	return best, true
}

// staleness: "Default: max(2.5 × interval, 45s)".
func (m *model) staleness(interval at) at {
	if m.cfg.Staleness > 0 {
		return m.cfg.Staleness
	}
	return max(interval*5/2, 45*time.Second)
}

// interval: "the median, over the service's devices, of the last five gaps between
// the points of the first field of a device; […] before three gaps it is initial_interval".
func (m *model) interval(pods []*pod) at {
	var all []at
	for _, p := range pods {
		for _, device := range m.devicesSeenOf(p) {
			for f := range numSamples {
				points := m.pointsOf(p, device, f)
				if slices.ContainsFunc(points, func(x point) bool { return !x.end }) {
					all = append(all, lastGaps(points)...)
					break
				}
			}
		}
	}
	if len(all) < 3 {
		return m.cfg.InitialInterval
	}
	return median(all)
}

// lastGaps: "the last five gaps between these points; a gap over
// 6m is an outage, not an interval". Reading: an end is no point, and
// two points at one time have no gap.
func lastGaps(points []point) []at {
	var stamps []at
	for _, p := range points {
		if !p.end {
			stamps = append(stamps, p.stamp)
		}
	}
	slices.Sort(stamps)
	stamps = slices.Compact(stamps)
	stamps = stamps[max(0, len(stamps)-6):]
	var gaps []at
	for i := 1; i < len(stamps); i++ {
		if gap := stamps[i] - stamps[i-1]; gap <= 6*time.Minute {
			gaps = append(gaps, gap)
		}
	}
	return gaps
}

func median(all []at) at {
	slices.Sort(all)
	n := len(all)
	if n%2 == 1 {
		return all[n/2]
	}
	return (all[n/2-1] + all[n/2]) / 2
}
