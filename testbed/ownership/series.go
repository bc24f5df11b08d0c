// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Endings is what became of the series of devices: every point once, and the
// series of a former owner ended once.
type Endings struct {
	Series   int // of devices and their owners
	Ended    int // with a marker
	Repeated int // points of gpu.allocation: a snapshot that was sent again
	Faults   int
	Findings []string
}

func (e *Endings) find(p *Point, format string, args ...any) {
	if e.Faults++; e.Faults <= maxFindings {
		e.Findings = append(e.Findings, fmt.Sprintf("%s %s of %s on %s, %s: %s",
			p.Time.UTC().Format("15:04:05.000"), p.Metric, p.Device, p.Node, p.Owner, fmt.Sprintf(format, args...)))
	}
}

func (e Endings) String() string {
	return fmt.Sprintf("series: %d, ended %d, faults %d", e.Series, e.Ended, e.Faults)
}

// seriesKey is a series whatever the owner of the device; of gpu.allocation, that of an
// owner.
type seriesKey struct {
	node, device, metric, attributes string
	owner                            Owner
}

// Follow goes along every series of a device, from owner to owner. The ledger
// knows where a device changed owners and back without a report: such a
// series has ended, too, and lives again.
//
// Telemetry of a device has one owner at a time, and the marker of the former
// the time of the new one's first point. A snapshot of gpu.allocation may come in
// parts, so that what is gone may end an interval later.
func Follow(points []Point, ledger *Ledger, interval time.Duration) Endings {
	all := map[seriesKey][]*Point{}
	newest := map[string]time.Time{} // snapshot of each node
	var keys []seriesKey
	for i := range points {
		p := &points[i]
		if p.Device == "" {
			continue
		}
		key := seriesKey{node: p.Node, device: p.Device, metric: p.Metric, attributes: p.Attributes}
		if p.Metric == names.GPUAllocation.Name {
			key.owner = p.Owner
			key.owner.UID = ""
			if !p.Ended && p.Time.After(newest[p.Node]) {
				newest[p.Node] = p.Time
			}
		}
		if all[key] == nil {
			keys = append(keys, key)
		}
		all[key] = append(all[key], p)
	}
	var e Endings
	for _, key := range keys {
		live, ended := e.follow(all[key], ledger)
		if key.metric == names.GPUAllocation.Name && live != nil && !ended && newest[key.node].Sub(live.Time) > interval {
			e.find(live, "has not ended, although there is a snapshot of %s", newest[key.node].UTC().Format("15:04:05.000"))
		}
	}
	return e
}

// follow returns the last live point, and whether it was followed by a marker.
func (e *Endings) follow(points []*Point, ledger *Ledger) (*Point, bool) {
	// A marker has the time of the data that took over.
	slices.SortStableFunc(points, func(a, b *Point) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(btoi(b.Ended), btoi(a.Ended)))
	})
	var live *Point
	var ended time.Time // of live
	// nameless is whether live was a series without a service before its service was
	// known: that one ends by itself.
	nameless := false
	for _, p := range points {
		if p.Ended {
			switch {
			case nameless && p.Service == "" && live.same(p) && live.Service != "":
				nameless = false
				e.Ended++
				continue
			case live == nil || !live.same(p):
				e.find(p, "ended, but not alive")
			case !ended.IsZero():
				e.find(p, "ended twice")
			case live.Service != p.Service:
				e.find(p, "ended as a series of service %q, but it is one of %q", p.Service, live.Service)
			default:
				e.Ended++
			}
			ended = p.Time
			continue
		}
		switch {
		case live == nil:
			e.Series++
		case live.Time.Equal(p.Time) && p.Metric == names.GPUAllocation.Name && live.Owner.same(p.Owner) && live.Value == p.Value:
			e.Repeated++
		case live.Time.Equal(p.Time):
			e.find(p, "twice at one time, also of %s", live.Owner)
		case live.same(p) && !ended.IsZero() && live.Service == "" && p.Service != "":
			e.Series++ // its service became known
		case live.same(p) && !ended.IsZero() && !ledger.lost(p.Device, live.Owner, live.Time, p.Time):
			e.find(p, "alive after its end at %s", ended.UTC().Format("15:04:05.000"))
		case !live.same(p):
			e.Series++
			if ended.IsZero() {
				e.find(p, "the series of %s has not ended", live.Owner)
			}
		}
		switch {
		case live == nil || !live.same(p):
			nameless = false
		case live.Service == "" && p.Service != "":
			nameless = ended.IsZero()
		}
		live, ended = p, time.Time{}
	}
	return live, !ended.IsZero()
}

// same reports whether two points of a device's metric are of one series.
func (p *Point) same(o *Point) bool { return p.Owner.same(o.Owner) && p.Description == o.Description }

// same is the identity of an owner: the uid is no part of it.
func (h Owner) same(o Owner) bool {
	return h.Namespace == o.Namespace && h.Pod == o.Pod && h.Container == o.Container
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
