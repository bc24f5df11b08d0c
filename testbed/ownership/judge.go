// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Rules are how late an agent may be.
type Rules struct {
	// Interval is one poll of the kubelet plus one collection: what is reported at a
	// time must have been true at some moment of the interval before it.
	Interval time.Duration
	// Slack is how much younger than its timestamp a fact may be: the agent
	// takes the time before it asks.
	Slack time.Duration
	// Silences are times at which the owners of a node could not be known.
	Silences []Silence
}

// Silence is a kubelet that does not answer. From Unknown on, its node's owners
// must be called unknown; after it, they are known again within an interval.
type Silence struct {
	Node                 string
	From, Unknown, Until time.Time // Until zero: it lasts
}

func (s *Silence) over(at time.Time) bool { return !s.Until.IsZero() && at.After(s.Until) }

// Kind is what is wrong with a point.
type Kind string

// The kinds of faults.
const (
	Wrong   Kind = "wrong"   // an owner that never was, a share that it never had
	Stale   Kind = "stale"   // an owner that was, longer ago than an interval
	Unknown Kind = "unknown" // no owner, although there has been one for an interval
)

// Finding is one point that is at fault.
type Finding struct {
	Kind    Kind
	Point   Point
	Message string
}

func (f Finding) String() string {
	p := &f.Point
	return fmt.Sprintf("%s: %s %s of %s on %s says %s: %s", f.Kind,
		p.Time.UTC().Format("15:04:05.000"), p.Metric, p.Device, p.Node, p.Owner, f.Message)
}

// Verdict is the sum of what Judge found.
type Verdict struct {
	Points                int // about devices
	Wrong, Stale, Unknown int
	Expected              int // unknown, and rightly so
	Findings              []Finding
}

// maxFindings is how many findings of a kind a verdict reports.
const maxFindings = 5

func (v *Verdict) find(kind Kind, p *Point, format string, args ...any) {
	n := map[Kind]*int{Wrong: &v.Wrong, Stale: &v.Stale, Unknown: &v.Unknown}[kind]
	if *n++; *n <= maxFindings {
		v.Findings = append(v.Findings, Finding{kind, *p, fmt.Sprintf(format, args...)})
	}
}

// Add adds another verdict.
func (v *Verdict) Add(o Verdict) {
	v.Points += o.Points
	v.Wrong += o.Wrong
	v.Stale += o.Stale
	v.Unknown += o.Unknown
	v.Expected += o.Expected
	v.Findings = append(v.Findings, o.Findings...)
}

func (v Verdict) String() string {
	return fmt.Sprintf("owners: %d points, wrong %d, stale %d, unknown %d (%d expected)", v.Points, v.Wrong, v.Stale, v.Unknown, v.Expected)
}

// ofBoards are metrics about a board itself, whichever pod uses it: they have no owner.
var ofBoards = []string{
	names.HwStatus.Name, names.GPUHealthReason.Name, names.GPUHealthCoverage.Name, names.GPUHealthScore.Name, names.GPUStraggler.Name,
}

// Judge compares the owner of every point about a device with the ledger, and
// of gpu.allocation the value as well.
func Judge(points []Point, ledger *Ledger, rules Rules) Verdict {
	var v Verdict
	for i := range points {
		p := &points[i]
		if p.Device == "" || p.Ended || slices.Contains(ofBoards, p.Metric) && p.Owner == (Owner{}) {
			continue
		}
		v.Points++
		rules.judge(&v, p, ledger)
	}
	return v
}

func (r *Rules) judge(v *Verdict, p *Point, ledger *Ledger) {
	from := p.Time.Add(-r.Interval)
	excused, silent := false, false
	for i := range r.Silences {
		s := &r.Silences[i]
		if s.Node != p.Node || p.Time.Before(s.From) || s.over(from) {
			continue
		}
		excused = true
		silent = silent || !p.Time.Before(s.Unknown) && !s.over(p.Time.Add(r.Slack))
		// What was last seen holds until it must be called unknown.
		if seen := s.From.Add(-r.Interval); seen.Before(from) {
			from = seen
		}
	}
	now, former, known := ledger.between(p.Device, from, p.Time.Add(r.Slack))
	allocation := p.Metric == names.GPUAllocation.Name
	switch {
	case !known:
		v.find(Wrong, p, "there is no such device")
	case silent && (allocation || p.Owner != Owner{}):
		v.find(Stale, p, "the kubelet is silent")
	case len(now) == 0:
		v.find(Stale, p, "the device is gone")
	case allocation:
		judgeAllocation(v, p, now, former)
	case p.Owner != Owner{}:
		judgeOwner(v, p, now, former)
	// A device with several owners belongs to none of them.
	case slices.ContainsFunc(now, func(s State) bool { return len(s.Owners) != 1 }) && !silent:
	case excused:
		v.Expected++
	default:
		v.find(Unknown, p, "it is held by %v", now[0].Owners)
	}
}

func judgeOwner(v *Verdict, p *Point, now, former []State) {
	switch {
	case slices.ContainsFunc(now, p.Owner.In):
	case slices.ContainsFunc(former, p.Owner.In):
		v.find(Stale, p, "that is over, it is %v", owners(now))
	default:
		v.find(Wrong, p, "it is %v", owners(now))
	}
}

func judgeAllocation(v *Verdict, p *Point, now, former []State) {
	if (p.Owner != Owner{}) {
		before := v.Wrong + v.Stale
		judgeOwner(v, p, now, former)
		if v.Wrong+v.Stale == before && !slices.ContainsFunc(now, func(s State) bool {
			return p.Owner.In(s) && math.Abs(s.Share-p.Value) < 1e-9
		}) {
			v.find(Wrong, p, "the share is not %v", p.Value)
		}
		return
	}
	switch {
	case p.Value != 0:
		v.find(Wrong, p, "a share of %v that no container has", p.Value)
	case !slices.ContainsFunc(now, State.free):
		v.find(Wrong, p, "it is not free: %v", owners(now))
	}
}

func (s State) free() bool { return len(s.Owners) == 0 && !s.Divided }

// In reports whether h is one of the owners of a state.
func (h Owner) In(s State) bool { return slices.ContainsFunc(s.Owners, h.Is) }

// owners are the owners of all these states.
func owners(states []State) (out []Owner) {
	for _, s := range states {
		if len(s.Owners) == 0 {
			out = append(out, Owner{})
		}
		out = append(out, s.Owners...)
	}
	return out
}
