// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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
	Findings []string // each with the points around it, a line each

	found map[moment]bool
}

// find records a fault of the i-th point of a series. Of several series of a device that
// have it at one time, the first is described.
func (e *Endings) find(series []*Point, i int, format string, args ...any) {
	p := series[i]
	e.Faults++
	at := moment{p.Node, p.Device, format, p.Time.UnixNano()}
	if e.found[at] || len(e.Findings) == maxFindings {
		return
	}
	if e.found == nil {
		e.found = map[moment]bool{}
	}
	e.found[at] = true
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s of %s on %s, %s: %s", clock(p.Time), p.Metric, p.Device, p.Node, p.Owner, fmt.Sprintf(format, args...))
	fmt.Fprintf(&b, "\n  attributes: %s", strings.ReplaceAll(strings.TrimSpace(p.Attributes), "\n", ", "))
	for j := max(0, i-shownBefore); j < min(len(series), i+1+shownAfter); j++ {
		b.WriteString("\n" + map[bool]string{true: "> ", false: "  "}[j == i] + series[j].line())
	}
	e.Findings = append(e.Findings, b.String())
}

// shownBefore and shownAfter are the points of a series that are shown with a fault.
const shownBefore, shownAfter = 6, 3

// moment is where a fault was found.
type moment struct {
	node, device, format string
	at                   int64
}

func (p *Point) line() string {
	value := fmt.Sprint(p.Value)
	if p.Ended {
		value = "end"
	}
	return fmt.Sprintf("%s arrived %s: %s, %s, service %q %s", clock(p.Time), clock(p.Arrived), value, p.Owner, p.Service,
		strings.ReplaceAll(strings.TrimSpace(p.Description), "\n", ", "))
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

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
		series := all[key]
		live, ended := e.follow(series, ledger)
		if key.metric == names.GPUAllocation.Name && live >= 0 && !ended && newest[key.node].Sub(series[live].Time) > interval {
			e.find(series, live, "has not ended, although there is a snapshot of %s", clock(newest[key.node]))
		}
	}
	return e
}

// follow returns which point is the last live one, -1 if none is, and whether it was
// followed by a marker.
func (e *Endings) follow(points []*Point, ledger *Ledger) (last int, over bool) {
	// A marker has the time of the data that took over.
	slices.SortStableFunc(points, func(a, b *Point) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(btoi(b.Ended), btoi(a.Ended)))
	})
	last = -1
	var live *Point
	var ended time.Time // of live
	// nameless is the last point of live before its service was known, if that series,
	// without a service, has to end by itself: else -1.
	nameless := -1
	for i, p := range points {
		if p.Ended {
			switch {
			case nameless >= 0 && p.Service == "" && live.same(p) && live.Service != "":
				nameless = -1
				e.Ended++
				continue
			case live == nil || !live.same(p):
				e.find(points, i, "ended, but not alive")
			case !ended.IsZero():
				e.find(points, i, "ended twice")
			case live.Service != p.Service:
				e.find(points, i, "ended as a series of service %q, but it is one of %q", p.Service, live.Service)
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
			e.find(points, i, "twice at one time, also of %s", live.Owner)
		case live.same(p) && !ended.IsZero() && live.Service == "" && p.Service != "":
			e.Series++ // its service became known
		case live.same(p) && !ended.IsZero() && live.otherPod(p):
			e.Series++
		case live.same(p) && !ended.IsZero() && !ledger.lost(p.Device, live.Owner, live.Time, p.Time):
			e.find(points, i, "alive after its end at %s", clock(ended))
		case !live.same(p):
			e.Series++
			if ended.IsZero() {
				e.find(points, i, "the series of %s has not ended", live.Owner)
			}
			e.unnamed(points, nameless)
			nameless = -1
		}
		if live != nil && live.same(p) && live.Service == "" && p.Service != "" && ended.IsZero() {
			nameless = last
		}
		last, live, ended = i, p, time.Time{}
	}
	e.unnamed(points, nameless)
	return last, !ended.IsZero()
}

// unnamed finds a series without a service that has not ended, if there is one.
func (e *Endings) unnamed(points []*Point, nameless int) {
	if nameless >= 0 {
		e.find(points, nameless, "has not ended, although its service became known")
	}
}

// same reports whether two points of a device's metric are of one series.
func (p *Point) same(o *Point) bool { return p.Owner.same(o.Owner) && p.Description == o.Description }

// otherPod reports whether the resources of two points of one owner describe different
// pods: one was replaced under its name, or is known to have started. Telemetry of a
// device ends with its resource, which need not be when the device is handed over.
func (p *Point) otherPod(o *Point) bool {
	return p.Metric != names.GPUAllocation.Name && (p.Owner.UID != o.Owner.UID || p.Started != o.Started)
}

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
