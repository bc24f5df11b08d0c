// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/claims"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

const (
	// settle is how long points wait for their judge: the ledger's entry about
	// a change comes after the change.
	settle = 3 * time.Second
	// late is what scrape, batch, wire and evaluation take in all.
	late = 3 * interval
	// mostSilent is how long a service may go without an evaluation.
	mostSilent = 4 * interval
	// threshold is gpu_summary's partial_threshold.
	threshold = 0.25
)

// judge judges what arrives until ctx ends, and then the rest.
func (w *world) judge(ctx context.Context) {
	for pause(ctx, time.Second) {
		w.judgeBefore(time.Now().Add(-settle))
	}
	w.judgeBefore(time.Now().Add(time.Hour))
}

func (w *world) judgeBefore(t time.Time) {
	points, evaluations := w.recorder.ripe(t)
	var nodes []string
	for _, n := range w.nodes {
		nodes = append(nodes, n.name)
	}
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
	rules := ownership.Rules{Interval: 2*interval + late, Slack: 2 * interval, Silences: w.history.silences(nodes, false)}
	v := ownership.Judge(labelled, w.ledger, rules)
	rules.Silences = w.history.silences(nodes, true)
	v.Add(ownership.Judge(joined, w.ledger, rules))
	w.verdict.count(func() { w.verdict.points += v.Points; w.verdict.expected += v.Expected })
	for _, f := range v.Findings {
		w.verdict.violate("holders", "%s", f)
	}
	for i := range evaluations {
		w.judgeEvaluation(&evaluations[i])
	}
	w.judgeClaims(t)
}

// oldXID is after how long an XID that is raised is of an earlier report: what waits for
// a gateway that was away is not that old.
const oldXID = time.Minute

// judgeClaims judges what was reported over time: the states of pods, that exporters are not
// frozen, and events that arrived before a time.
func (w *world) judgeClaims(t time.Time) {
	states, notFrozen := w.recorder.claimed()
	for _, batch := range states {
		for _, found := range w.states.Observe(batch) {
			w.verdict.violate("states", "%s", found)
		}
	}
	for i := range notFrozen {
		word := &notFrozen[i]
		s, ok := w.history.frozenAt(word.Node, word.At)
		if since := w.agentSince(word.Node); ok && !word.Known(claims.Frozen{From: s.from, To: s.to, Agent: since}) {
			w.verdict.violate("frozen", "the agent of %s cannot know yet that the exporter is not frozen, which it reported at %s", word.Node, w.clock(word.At))
		}
	}
	events := w.recorder.Events()
	w.mu.Lock()
	reported := slices.Clone(w.reported)
	w.mu.Unlock()
	for ; w.seen < len(events) && events[w.seen].arrived.Before(t); w.seen++ {
		e := &events[w.seen]
		switch {
		case e.name == names.EventXID && e.state != names.EventCleared:
			for _, found := range claims.OldXIDs([]claims.XID{{Device: e.device, Code: e.code, At: e.at}}, reported, oldXID) {
				w.verdict.violate("xids", "%s", found)
			}
		case e.name == names.EventServicePartial && e.state == names.EventCleared:
			service := e.key[strings.LastIndex(e.key, "/")+1:]
			if b := w.bounds(service, e.at); float64(b.certain) > threshold*float64(b.certain+b.maybe+b.there) {
				w.verdict.violate("cleared", "%s is reported as no longer partial at %s, and %d of its pods are missing", service, w.clock(e.at), b.certain)
			}
		}
	}
}

// agentSince is when the agent of a node started.
func (w *world) agentSince(node string) (since time.Time) {
	for _, n := range w.nodes {
		if n.name == node && n.agent != nil {
			_, since = n.agent.Running()
		}
	}
	return since
}

// bounds are how many pods of a service may and must be missing at a time.
type bounds struct {
	certain int // missing, for every observer
	maybe   int // missing or not
	there   int // settled and reporting, for every observer
}

func (w *world) bounds(service string, at time.Time) (b bounds) {
	from := at.Add(-staleness - late)
	whole := w.history.wholeBefore(at)
	for _, l := range w.history.of(service, from, at) {
		stays := l.to.IsZero() || l.to.After(at.Add(late))
		settled := stays && (l.from.Before(whole) || l.from.Before(at.Add(-warmup-staleness-late)) || l.pod.started.Before(l.from.Add(-time.Minute)))
		switch {
		case !stays && l.to.Before(whole):
			// It is over, and that is known.
		case settled && w.history.wasSilent(l.node, from, at):
			b.certain++
		// A disturbance lasts until all was found to be well again.
		case settled && !w.history.wasDisturbed(l.node, at.Add(-interval), at):
			b.there++
		default:
			b.maybe++
		}
	}
	return b
}

// judgeEvaluation judges one service at one time.
func (w *world) judgeEvaluation(e *evaluation) {
	w.verdict.count(func() { w.verdict.evaluations++ })
	last := w.evaluated[e.service]
	w.evaluated[e.service] = e.at
	if gap := e.at.Sub(last); !last.IsZero() && gap > mostSilent && !w.history.wasDisturbed(gatewayPlace, last.Add(-late), e.at) && len(w.history.of(e.service, last, last)) > 0 {
		w.verdict.violate("evaluations", "%s was not evaluated for %.1f s until %s", e.service, gap.Seconds(), w.clock(e.at))
	}
	from := e.at.Add(-interval)
	if w.history.wasDisturbed(gatewayPlace, from, e.at) {
		return // it may not know yet, and reports that, or does not run
	}
	b := w.bounds(e.service, e.at)
	if b == (bounds{}) {
		return // a service that is over
	}
	reported := e.partial != nil && *e.partial == 1
	w.verdict.count(func() {
		w.verdict.partial++
		if reported {
			w.verdict.partials[e.service] = append(w.verdict.partials[e.service], e.at)
		}
	})
	all := float64(b.certain + b.maybe + b.there)
	// All that may be settled is: that makes the ratio least.
	must := float64(b.certain)/all > threshold
	// None that may be is settled, but for those that are missing.
	may := b.certain+b.maybe > 0 && float64(b.certain+b.maybe)/all > threshold
	switch {
	case reported && !may:
		w.verdict.violate("partial", "%s is reported as partial at %s, but %d of its pods must report and only %d may be missing; reported: %v",
			e.service, w.clock(e.at), b.there, b.certain+b.maybe, e.pods)
		return
	case must && !reported:
		w.verdict.violate("partial", "%s is not reported as partial at %s, although %d of its %g pods are missing; reported: %v",
			e.service, w.clock(e.at), b.certain, all, e.pods)
	}
	if must {
		w.verdict.count(func() { w.verdict.truePartial++ })
	}
	if b.certain+b.maybe > 0 || w.history.wasDisturbed(apiPlace, from, e.at) {
		return
	}
	if e.pods["reporting"] != float64(b.there) || e.pods["missing"] != 0 {
		w.verdict.violate("pods", "%s has %d pods at %s, all of them well; reported: %v", e.service, b.there, w.clock(e.at), e.pods)
		return
	}
	w.judgeAverages(e)
}

// clock is a time as the lines of the run count it.
func (w *world) clock(at time.Time) string { return fmt.Sprintf("%.1f s", at.Sub(w.started).Seconds()) }
