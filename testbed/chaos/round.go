// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/claims"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/process"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// errTaken is that another program took a port between our looking and using it.
var errTaken = errors.New("another program took a port of a collector")

// ErrBroken is the error of a run that went to its end and found a violation.
var ErrBroken = errors.New("invariants were violated")

const (
	// quiet is how long the fleet is left alone once it is whole, so that its
	// averages can be judged.
	quiet = 4 * interval
	// usualStart is how long the whole fleet takes to start on a machine with two
	// free cores. A slower one has more time for everything.
	usualStart = 15 * time.Second
	// mostWaiting is for how long a fleet is given to be whole after its time was
	// over, before the run ends.
	mostWaiting = 2 * time.Minute
)

// Run plays rounds of faults until its time is over, and judges. The last line
// that it writes is the sum. Its error is ErrBroken if anything was violated, or
// returns why the run could not be made.
func Run(ctx context.Context, o Options) error {
	var names []string
	if o.Only != "" {
		names = strings.Split(o.Only, ",")
	}
	from, err := pick(names)
	if err != nil {
		return err
	}
	var w *world
	for tries := 0; ; tries++ {
		w, err = newWorld(ctx, o)
		if err == nil {
			err = w.up(ctx)
		}
		if !errors.Is(err, errTaken) || tries == 3 {
			break
		}
		w.close() // once more, on other ports
	}
	defer w.close()
	if err != nil {
		return err
	}
	w.logf("seed %d, for %v: a second stands for an interval of 15 s; files are in %s", o.Seed, o.Duration, o.Dir)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var watchers sync.WaitGroup
	watchers.Go(func() { w.watchMachine(watching) })
	watchers.Go(func() { w.chronicle.watch(watching, w.nodes) })
	watchers.Go(func() { w.judge(watching) })
	defer watchers.Wait()
	defer stop()

	if err := w.play(ctx, newScript(o.Seed, w.nodes, from)); err != nil {
		return err
	}
	if err := w.finish(ctx); err != nil {
		return err
	}
	stop()
	watchers.Wait()
	w.verdict.report()
	broken := w.verdict.Violations() > 0
	if broken {
		w.logf("see it again with: make chaos DURATION=%v SEED=%d", o.Duration, o.Seed)
	}
	fmt.Fprintln(o.Out, w.verdict.Summary())
	if broken {
		return ErrBroken
	}
	return nil
}

// play waits until the fleet is whole and plays rounds until the time is over.
func (w *world) play(ctx context.Context, s *script) error {
	if err := w.recover(ctx, nil, w.started, 2*time.Minute); err != nil {
		return err
	}
	w.watches = w.api.Watches()
	took := time.Since(w.started)
	w.factor = max(1, float64(took)/float64(usualStart))
	w.logf("all collectors are up and all services whole after %.1f s", took.Seconds())
	w.logf("every fault has %.1f times its usual time to be over", w.factor)
	if err := w.rest(ctx); err != nil {
		return err
	}
	for time.Since(w.started) < w.Duration {
		if !s.calm && s.all() && time.Since(w.started) > w.Duration*3/5 {
			s.calm = true
			w.logf("from here on no collector is restarted: what each takes is compared over a long life")
		}
		if err := w.round(ctx, s.next()); err != nil {
			return err
		}
		if err := w.rest(ctx); err != nil {
			return err
		}
	}
	return nil
}

// probe is an XID that was injected and must be reported.
type probe struct {
	device string
	code   int
	at     time.Time
}

// xids are codes that end no more than an application.
var xids = []int{31, 43, 45, 13, 94, 63, 79, 119}

// inject lets a GPU of any node report an XID, which must be reported. A node with
// damaged state cannot know that it is new.
func (w *world) inject(round []*fault) error {
	n := w.nodes[w.rand.IntN(len(w.nodes))]
	index := w.rand.IntN(4)
	for _, f := range round {
		if f.node == n && (f.name == "agent_state_damaged" || f.name == "sentinel" || f.name == "gpu_lost" || f.name == "agent_kill_cut_off") {
			return nil
		}
	}
	return w.injectOn(n, index)
}

func (w *world) injectOn(n *member, index int) error {
	devices, err := n.fleet.Devices(n.name)
	if err != nil {
		return err
	}
	// Never the same twice: the exporter's default fields have the last code, and
	// no count.
	id := devices[index].UUID
	w.xids[id]++
	code := xids[w.xids[id]%len(xids)]
	_, err = n.fleet.StartFault(gpusim.Fault{Node: n.name, Kind: gpusim.XID, Device: strconv.Itoa(index), Code: code})
	w.probes = append(w.probes, &probe{id, code, time.Now()})
	w.mu.Lock()
	w.reported = append(w.reported, claims.XID{Device: id, Code: strconv.Itoa(code), At: time.Now()})
	w.mu.Unlock()
	w.verdict.fault(fmt.Sprintf("XID %d of %s on %s", code, id, n.name))
	return err
}

// round plays faults, waits until the fleet is whole again, and compares.
func (w *world) round(ctx context.Context, faults []*fault) error {
	w.verdict.count(func() { w.verdict.rounds++; w.verdict.injected += len(faults) })
	var list []string
	for _, f := range faults {
		list = append(list, fmt.Sprintf("%s for %.1f s", f, f.last.Seconds()))
	}
	w.logf("round %d: %s", w.verdict.rounds, strings.Join(list, ", "))
	began := time.Now()
	w.probes = nil
	// A fault that takes a while to begin lasts as long all the same.
	due := map[*fault]time.Time{}
	for _, f := range faults {
		due[f] = began.Add(f.at)
	}
	for n := 0; len(due) > 0; n++ {
		next := slices.MinFunc(slices.Collect(maps.Keys(due)), func(a, b *fault) int {
			return cmp.Or(due[a].Compare(due[b]), strings.Compare(a.String(), b.String()))
		})
		if wait := time.Until(due[next]); wait > 0 && !pause(ctx, wait) {
			return ctx.Err()
		}
		if err := w.take(ctx, next); err != nil {
			return fmt.Errorf("%s: %w", next, err)
		}
		if next.on {
			due[next] = time.Now().Add(next.last)
		} else {
			delete(due, next)
		}
		if n == len(faults)/2 {
			if err := w.inject(faults); err != nil {
				return err
			}
		}
	}
	over := time.Now()
	bound := time.Duration(0)
	for _, f := range faults {
		bound = max(bound, f.recovery)
	}
	if err := w.recover(ctx, w.probes, over, bound); err != nil {
		return err
	}
	w.verdict.count(func() { w.verdict.probes += len(w.probes) })
	took := time.Since(over)
	for _, f := range faults {
		w.counted(ctx, f)
	}
	w.judgePartialEvents(began)
	w.verdict.recovered(faults, took)
	return nil
}

// take begins a fault, or ends one that is on.
func (w *world) take(ctx context.Context, f *fault) (err error) {
	f.on = !f.on
	if !f.on {
		w.verdict.fault("end of " + f.String())
		// From before its end on nothing is sure any more.
		if f.place == onNode {
			w.history.silence(f.node.name, false)
			w.history.deafen(f.node.name, false)
		}
		return f.end()
	}
	w.verdict.fault(f.String())
	f.counted, f.countedLife = w.counter(ctx, f)
	if place := f.where(); place != "" && !f.harmless {
		w.history.disturb(place)
	}
	if f.end, err = f.begin(w, f); err != nil {
		return err
	}
	if f.place == onNode && f.silent {
		w.history.silence(f.node.name, true)
	}
	if f.place == onNode && f.deaf {
		w.history.deafen(f.node.name, true)
	}
	return nil
}

// recover waits until the fleet is whole. It is a violation if that takes longer
// than the bound, on a machine that is as slow as this one and stood still for
// as long; and an error if it never is.
func (w *world) recover(ctx context.Context, probes []*probe, since time.Time, bound time.Duration) error {
	bound = time.Duration(float64(bound) * w.factor)
	stalled := w.history.Stalled()
	logged := false
	for {
		if w.taken.Load() {
			return errTaken
		}
		missing := w.missing(ctx, probes, since)
		if len(missing) == 0 {
			w.history.recovered(time.Now())
			return nil
		}
		most := bound + 2*(w.history.Stalled()-stalled)
		took := time.Since(since)
		if took > most && !logged {
			logged = true
			w.verdict.violate("recovery", "%.1f s after the last fault was over, of %.1f that it may take: %s", took.Seconds(), most.Seconds(), strings.Join(missing, "; "))
		}
		if took > most+mostWaiting {
			return fmt.Errorf("the fleet does not recover: %s", strings.Join(missing, "; "))
		}
		if !pause(ctx, interval/4) {
			return ctx.Err()
		}
	}
}

// up waits until all collectors answer.
func (w *world) up(ctx context.Context) error {
	for began := time.Now(); time.Since(began) < 2*time.Minute; {
		if w.taken.Load() {
			return errTaken
		}
		if !slices.ContainsFunc(w.processes(), func(p *process.Process) bool { return !p.Ready(ctx) }) {
			return nil
		}
		if !pause(ctx, interval/10) {
			return ctx.Err()
		}
	}
	return nil // what is wrong is for recover to report
}

// missing returns what keeps the fleet from being whole.
func (w *world) missing(ctx context.Context, probes []*probe, since time.Time) (out []string) {
	for _, p := range w.processes() {
		if !p.Ready(ctx) {
			out = append(out, p.Name+" is not healthy")
		}
	}
	if len(out) > 0 {
		return out
	}
	// Who has no watch knows nothing of pods that come and go.
	if open := w.api.Watches(); open < w.watches {
		out = append(out, fmt.Sprintf("%d of %d watches of the API server are open", open, w.watches))
	}
	evaluations, devices := w.recorder.newest()
	services := w.history.services()
	for service, pods := range services {
		e, ok := evaluations[service]
		switch {
		case !ok || !e.at.After(since):
			out = append(out, service+" was not evaluated since")
		case e.partial == nil || *e.partial != 0 || e.pods["reporting"] != float64(pods) || e.pods["missing"]+e.pods["degraded"]+e.pods["warming"]+e.pods["not_running"] != 0:
			out = append(out, fmt.Sprintf("%s has %d pods, reported: %v, partial %v", service, pods, e.pods, e.partial != nil && *e.partial == 1))
		}
	}
	for id, state := range w.ledger.Now() {
		h, ok := devices[state.Node+" "+id]
		divided := strings.Contains(id, "::") || state.Divided
		switch {
		case divided && len(state.Owners) == 0:
			// A free share has no telemetry, nor has a board with instances its own
			// utilization.
		case !ok || !h.at.After(since):
			out = append(out, fmt.Sprintf("nothing was received about %s on %s since", id, state.Node))
		case len(state.Owners) == 1 && h.owner.Pod != state.Owners[0].Pod, len(state.Owners) == 1 && h.owner.UID != "" && h.owner.UID != state.Owners[0].UID, len(state.Owners) == 0 && h.owner.Pod != "":
			out = append(out, fmt.Sprintf("%s on %s is reported as owned by %s, but it is %v", id, state.Node, h.owner, state.Owners))
		}
	}
	raised := map[string]string{}
	for _, e := range w.recorder.Events() {
		for i, p := range probes {
			if p != nil && e.name == names.EventXID && e.device == p.device && e.code == strconv.Itoa(p.code) && e.arrived.After(p.at) {
				probes = slices.Delete(slices.Clone(probes), i, i+1)
				break
			}
		}
		// A client of the gateway can invent a service. It ages.
		if slices.Contains(conditions, e.name) && !strings.Contains(e.key, "/hostile/") {
			raised[e.key] = e.state
		}
	}
	for _, p := range probes {
		out = append(out, fmt.Sprintf("XID %d of %s was not reported", p.code, p.device))
	}
	for key, state := range raised {
		if state != "cleared" {
			out = append(out, key+" is still raised")
		}
	}
	if waiting, ok := w.gateway.Metric(ctx, "otelcol_exporter_webhook_audit_buffered_records"); ok && waiting > 0 {
		out = append(out, fmt.Sprintf("%g audit records are not written", waiting))
	}
	if info, err := os.Lstat(w.audit()); err != nil || !info.Mode().IsRegular() {
		out = append(out, fmt.Sprintf("there is no audit file: %v", err))
	}
	slices.Sort(out)
	return out
}

// conditions are the events that must be cleared when all is well.
var conditions = []string{
	names.EventServicePartial, names.EventServiceNoData, names.EventExporterDown, names.EventDeviceLost, names.EventNodeLost, names.EventThrottle,
}

// rest leaves the fleet alone and measures it.
func (w *world) rest(ctx context.Context) error {
	if !pause(ctx, quiet) {
		return ctx.Err()
	}
	w.measure(ctx)
	w.listen(ctx)
	return nil
}
