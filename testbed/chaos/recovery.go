// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/claims"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/collectors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/judge"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

const (
	// usualStart is how long the whole fleet takes to start on a machine with two
	// free cores. A slower one has more time for everything.
	usualStart = 15 * time.Second
	// mostWaiting is for how long a fleet is given to be whole after its time was
	// over, before the run ends.
	mostWaiting = 2 * time.Minute
)

// recovery finds out what keeps the fleet from being whole, and waits until nothing
// does.
type recovery struct {
	fleet      *fleet.Fleet
	collectors *collectors.Collectors
	recorder   *judge.Recorder
	audit      string // path of the webhooks' audit log
	verdict    *judge.Verdict
	factor     float64 // how much slower than usual this machine is
	watches    int     // of the API server, when the fleet was whole at first
}

func newRecovery(w *world) *recovery {
	return &recovery{fleet: w.fleet, collectors: w.collectors, recorder: w.outputs.Recorder, audit: w.files.Audit(), verdict: w.verdict, factor: 1}
}

// first waits until the fleet is whole after its start, which shows how slow the machine
// is and how many watches there are.
func (r *recovery) first(ctx context.Context, journal *judge.Journal) error {
	if err := r.wait(ctx, nil, journal.Started, 2*time.Minute); err != nil {
		return err
	}
	r.watches = r.fleet.API.Watches()
	took := time.Since(journal.Started)
	r.factor = max(1, float64(took)/float64(usualStart))
	journal.Logf("all collectors are up and all services whole after %.1f s", took.Seconds())
	journal.Logf("every fault has %.1f times its usual time to be over", r.factor)
	return nil
}

// allowed is what a recovery may take on this machine.
func (r *recovery) allowed(usual time.Duration) time.Duration {
	return time.Duration(float64(usual) * r.factor)
}

// wait waits until the fleet is whole and the XIDs are reported. It is a violation if that
// takes longer than usual, on a machine that is as slow as this one and stood still for
// as long; and an error if it never is.
func (r *recovery) wait(ctx context.Context, xids []claims.XID, since time.Time, usual time.Duration) error {
	history := r.fleet.History
	stalled := history.Stalled()
	for logged := false; ; {
		if r.collectors.PortTaken() {
			return errTaken
		}
		missing := r.missing(ctx, xids, since)
		if len(missing) == 0 {
			history.Recovered(time.Now())
			return nil
		}
		most := r.allowed(usual) + 2*(history.Stalled()-stalled)
		took := time.Since(since)
		if took > most && !logged {
			logged = true
			r.verdict.Violate("recovery", "%.1f s after the last fault was over, of %.1f that it may take: %s", took.Seconds(), most.Seconds(), strings.Join(missing, "; "))
		}
		if took > most+mostWaiting {
			return fmt.Errorf("the fleet does not recover: %s", strings.Join(missing, "; "))
		}
		if !pace.Pause(ctx, pace.Interval/4) {
			return ctx.Err()
		}
	}
}

// missing returns what keeps the fleet from being whole, by what was reported since some
// time.
func (r *recovery) missing(ctx context.Context, xids []claims.XID, since time.Time) (out []string) {
	for _, p := range r.collectors.All() {
		if !p.Ready(ctx) {
			out = append(out, p.Name+" is not healthy")
		}
	}
	if len(out) > 0 {
		return out
	}
	// A collector without a watch knows nothing of pods that start and end.
	if open := r.fleet.API.Watches(); open < r.watches {
		out = append(out, fmt.Sprintf("%d of %d watches of the API server are open", open, r.watches))
	}
	evaluations, devices := r.recorder.Newest()
	events := r.recorder.Events()
	out = append(out, missingServices(r.fleet.History.Services(), evaluations, since)...)
	out = append(out, missingOwners(r.fleet.Ledger.Now(), devices, since)...)
	out = append(out, missingXIDs(xids, events)...)
	out = append(out, raised(events)...)
	if waiting, ok := r.collectors.Gateway.Metric(ctx, "otelcol_exporter_webhook_audit_buffered_records"); ok && waiting > 0 {
		out = append(out, fmt.Sprintf("%g audit records are not written", waiting))
	}
	if info, err := os.Lstat(r.audit); err != nil || !info.Mode().IsRegular() {
		out = append(out, fmt.Sprintf("there is no audit file: %v", err))
	}
	slices.Sort(out)
	return out
}

// missingServices returns which services, by name with the number of their pods, are not
// reported as whole.
func missingServices(services map[string]int, newest map[string]judge.Evaluation, since time.Time) (out []string) {
	for service, pods := range services {
		e, ok := newest[service]
		switch {
		case !ok || !e.At.After(since):
			out = append(out, service+" was not evaluated since")
		case e.Partial == nil || *e.Partial != 0 || e.Pods["reporting"] != float64(pods) || e.Pods["missing"]+e.Pods["degraded"]+e.Pods["warming"]+e.Pods["not_running"] != 0:
			out = append(out, fmt.Sprintf("%s has %d pods, reported: %v, partial %v", service, pods, e.Pods, e.Partial != nil && *e.Partial == 1))
		}
	}
	return out
}

// missingOwners returns which devices are not reported with their owner.
func missingOwners(truth map[string]ownership.State, newest map[string]judge.Seen, since time.Time) (out []string) {
	for id, state := range truth {
		h, ok := newest[state.Node+" "+id]
		divided := strings.Contains(id, "::") || state.Divided
		switch {
		case divided && len(state.Owners) == 0:
			// A free share has no telemetry, nor has a board with instances its own
			// utilization.
		case !ok || !h.At.After(since):
			out = append(out, fmt.Sprintf("nothing was received about %s on %s since", id, state.Node))
		case len(state.Owners) == 1 && h.Owner.Pod != state.Owners[0].Pod, len(state.Owners) == 1 && h.Owner.UID != "" && h.Owner.UID != state.Owners[0].UID, len(state.Owners) == 0 && h.Owner.Pod != "":
			out = append(out, fmt.Sprintf("%s on %s is reported as owned by %s, but it is %v", id, state.Node, h.Owner, state.Owners))
		}
	}
	return out
}

// missingXIDs returns which XIDs are not among the events that arrived after them, each
// of which reports one.
func missingXIDs(xids []claims.XID, events []judge.Event) (out []string) {
	left := slices.Clone(xids)
	for _, e := range events {
		if i := slices.IndexFunc(left, func(x claims.XID) bool {
			return e.Name == names.EventXID && e.Device == x.Device && e.Code == x.Code && e.Arrived.After(x.At)
		}); i >= 0 {
			left = slices.Delete(left, i, i+1)
		}
	}
	for _, x := range left {
		out = append(out, fmt.Sprintf("XID %s of %s was not reported", x.Code, x.Device))
	}
	return out
}

// conditions are the events that must be cleared when all is well.
var conditions = []string{
	names.EventServicePartial, names.EventServiceNoData, names.EventExporterDown, names.EventDeviceLost, names.EventNodeLost, names.EventThrottle,
}

// raised returns which conditions were not cleared.
func raised(events []judge.Event) (out []string) {
	states := map[string]string{}
	for _, e := range events {
		// A client of the gateway can invent a service. It ages.
		if slices.Contains(conditions, e.Name) && !strings.Contains(e.Key, "/hostile/") {
			states[e.Key] = e.State
		}
	}
	for key, state := range states {
		if state != names.EventCleared {
			out = append(out, key+" is still raised")
		}
	}
	return out
}
