// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package judge compares what collectors report with what is true: owners, which pods
// of a service report, averages, and events. A Recorder takes the reports, a Chronicle
// what the devices did, and a Verdict what is found.
package judge

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/claims"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/history"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

const (
	// settle is how long points wait for their judge: the ledger's entry about
	// a change comes after the change.
	settle = 3 * time.Second
	// mostSilent is how long a service may go without an evaluation.
	mostSilent = 4 * pace.Interval
	// threshold is gpu_summary's partial_threshold.
	threshold = 0.25
)

// Evidence is what was reported, and what is true.
type Evidence struct {
	Recorder  *Recorder
	Nodes     []string
	Ledger    *ownership.Ledger
	History   *history.History
	Chronicle *Chronicle
	// AgentSince returns when the agent of a node started; zero if it does not run.
	AgentSince func(node string) time.Time
	// XIDs returns those that GPUs were made to report.
	XIDs func() []claims.XID
}

// Judge judges evidence as it arrives.
type Judge struct {
	Evidence
	verdict *Verdict

	evaluated map[string]time.Time // last, by service
	states    claims.States
	seen      int // events

	mu       sync.Mutex             // guards partials
	partials map[string][]time.Time // evaluations that reported it, by service, since PartialEvents
}

// New is a judge that has judged nothing yet.
func New(e Evidence, v *Verdict) *Judge {
	return &Judge{Evidence: e, verdict: v, evaluated: map[string]time.Time{}, partials: map[string][]time.Time{}}
}

// Run judges what arrives until ctx ends, and then the rest.
func (j *Judge) Run(ctx context.Context) {
	for pace.Pause(ctx, time.Second) {
		j.before(time.Now().Add(-settle))
	}
	j.before(time.Now().Add(time.Hour))
}

// before judges what arrived before a time.
func (j *Judge) before(t time.Time) {
	points, evaluations := j.Recorder.ripe(t)
	j.owners(points)
	for i := range evaluations {
		j.evaluation(&evaluations[i])
	}
	j.claims(t)
}

// owners judges who is reported to own devices.
func (j *Judge) owners(points []ownership.Point) {
	// A MIG instance cannot be joined to what the kubelet reports, so that the
	// exporter's labels name its owner: a silent kubelet is no reason to report
	// none.
	var joined, labelled []ownership.Point
	for i := range points {
		if strings.Contains(points[i].Device, "/") {
			labelled = append(labelled, points[i])
		} else {
			joined = append(joined, points[i])
		}
	}
	now := time.Now()
	rules := ownership.Rules{Interval: 2*pace.Interval + pace.Late, Slack: 2 * pace.Interval, Silences: j.History.Silences(j.Nodes, false, now)}
	v := ownership.Judge(labelled, j.Ledger, rules)
	rules.Silences = j.History.Silences(j.Nodes, true, now)
	v.Add(ownership.Judge(joined, j.Ledger, rules))
	j.verdict.Count(func(c *Counts) { c.Points += v.Points; c.Expected += v.Expected })
	for _, f := range v.Findings {
		j.verdict.Violate("holders", "%s", f)
	}
}

// oldXID is after how long an XID that is raised is of an earlier report: what waits for
// a gateway that was away is not that old.
const oldXID = time.Minute

// claims judges what was reported over time: the states of pods, that exporters are not
// frozen, and events that arrived before a time.
func (j *Judge) claims(t time.Time) {
	states, notFrozen := j.Recorder.claimed()
	for _, batch := range states {
		for _, found := range j.states.Observe(batch) {
			j.verdict.Violate("states", "%s", found)
		}
	}
	for i := range notFrozen {
		claim := &notFrozen[i]
		s, ok := j.History.FrozenAt(claim.Node, claim.At)
		if since := j.AgentSince(claim.Node); ok && !claim.Known(claims.Frozen{From: s.From, To: s.To, Agent: since}) {
			j.verdict.Violate("frozen", "the agent of %s cannot know yet that the exporter is not frozen, which it reported at %s", claim.Node, j.clock(claim.At))
		}
	}
	events, xids := j.Recorder.Events(), j.XIDs()
	for ; j.seen < len(events) && events[j.seen].Arrived.Before(t); j.seen++ {
		e := &events[j.seen]
		switch {
		case e.Name == names.EventXID && e.State != names.EventCleared:
			for _, found := range claims.OldXIDs([]claims.XID{{Device: e.Device, Code: e.Code, At: e.At}}, xids, oldXID) {
				j.verdict.Violate("xids", "%s", found)
			}
		case e.Name == names.EventServicePartial && e.State == names.EventCleared:
			if b := j.bounds(e.Service(), e.At); float64(b.certain) > threshold*float64(b.all()) {
				j.verdict.Violate("cleared", "%s is reported as no longer partial at %s, and %d of its pods are missing", e.Service(), j.clock(e.At), b.certain)
			}
		}
	}
}

// bounds are how many pods of a service may and must be missing at a time.
type bounds struct {
	certain int // missing, for every observer
	maybe   int // missing or not
	there   int // settled and reporting, for every observer
}

func (b bounds) all() int { return b.certain + b.maybe + b.there }

func (j *Judge) bounds(service string, at time.Time) (b bounds) {
	from := at.Add(-pace.Staleness - pace.Late)
	whole := j.History.WholeBefore(at)
	for _, l := range j.History.Of(service, from, at) {
		stays := l.To.IsZero() || l.To.After(at.Add(pace.Late))
		settled := stays && (l.From.Before(whole) || l.From.Before(at.Add(-pace.Warmup-pace.Staleness-pace.Late)) || l.Started.Before(l.From.Add(-time.Minute)))
		switch {
		case !stays && l.To.Before(whole):
			// It is over, and that is known.
		case settled && j.History.WasSilent(l.Node, from, at):
			b.certain++
		// A disturbance lasts until all was found to be well again.
		case settled && !j.History.WasDisturbed(l.Node, at.Add(-pace.Interval), at):
			b.there++
		default:
			b.maybe++
		}
	}
	return b
}

// evaluation judges one service at one time.
func (j *Judge) evaluation(e *Evaluation) {
	j.verdict.Count(func(c *Counts) { c.Evaluations++ })
	at := j.clock(e.At)
	last := j.evaluated[e.Service]
	j.evaluated[e.Service] = e.At
	if gap := e.At.Sub(last); !last.IsZero() && gap > mostSilent && !j.History.WasDisturbed(history.Gateway, last.Add(-pace.Late), e.At) && len(j.History.Of(e.Service, last, last)) > 0 {
		j.verdict.Violate("evaluations", "%s was not evaluated for %.1f s until %s", e.Service, gap.Seconds(), at)
	}
	from := e.At.Add(-pace.Interval)
	if j.History.WasDisturbed(history.Gateway, from, e.At) {
		return // it may not know yet, and reports that, or does not run
	}
	b := j.bounds(e.Service, e.At)
	if b == (bounds{}) {
		return // a service that is over
	}
	if !j.partial(e, b) || b.certain+b.maybe > 0 || j.History.WasDisturbed(history.API, from, e.At) {
		return
	}
	if e.Pods["reporting"] != float64(b.there) || e.Pods["missing"] != 0 {
		j.verdict.Violate("pods", "%s has %d pods at %s, all of them well; reported: %v", e.Service, b.there, at, e.Pods)
		return
	}
	j.averages(e)
}

// partial judges whether a service is reported as partial. It returns false if it is, and
// may not be.
func (j *Judge) partial(e *Evaluation, b bounds) bool {
	reported := e.Partial != nil && *e.Partial == 1
	j.verdict.Count(func(c *Counts) { c.Partial++ })
	if reported {
		j.mu.Lock()
		j.partials[e.Service] = append(j.partials[e.Service], e.At)
		j.mu.Unlock()
	}
	all := float64(b.all())
	// All that may be settled is: that makes the ratio least.
	must := float64(b.certain)/all > threshold
	// None that may be is settled, but for those that are missing.
	may := b.certain+b.maybe > 0 && float64(b.certain+b.maybe)/all > threshold
	switch {
	case reported && !may:
		j.verdict.Violate("partial", "%s is reported as partial at %s, but %d of its pods must report and only %d may be missing; reported: %v",
			e.Service, j.clock(e.At), b.there, b.certain+b.maybe, e.Pods)
		return false
	case must && !reported:
		j.verdict.Violate("partial", "%s is not reported as partial at %s, although %d of its %g pods are missing; reported: %v",
			e.Service, j.clock(e.At), b.certain, all, e.Pods)
	}
	if must {
		j.verdict.Count(func(c *Counts) { c.TruePartial++ })
	}
	return true
}

// PartialEvents judges whether partial states since a time were sent as events.
func (j *Judge) PartialEvents(since time.Time) {
	j.mu.Lock()
	partials := j.partials
	j.partials = map[string][]time.Time{}
	j.mu.Unlock()
	if j.History.WasDisturbed(history.Gateway, since, time.Now()) {
		return // it may have ended between the two
	}
	raised := map[string]bool{}
	for _, e := range j.Recorder.Events() {
		if e.Name == names.EventServicePartial && e.State == names.EventRaised && e.Arrived.After(since) {
			raised[e.Service()] = true
		}
	}
	for service, times := range partials {
		// Those of the round before were checked then.
		times = slices.DeleteFunc(times, func(at time.Time) bool { return !at.After(since) })
		if len(times) > 2 && !raised[service] {
			j.verdict.Violate("events", "%s was reported as partial %d times, and no event of it was raised", service, len(times))
		}
	}
}

// clock is a time as the lines of the run count it.
func (j *Judge) clock(at time.Time) string { return j.verdict.journal.clock(at) }
