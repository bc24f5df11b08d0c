// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/faults"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/judge"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
)

const (
	// quiet is how long the fleet is left alone once it is whole, so that its
	// averages can be judged.
	quiet = 4 * pace.Interval
	// verifications is in how many rounds the audit log is verified once.
	verifications = 5
)

// player plays rounds: faults, recovery, rest.
type player struct {
	duration  time.Duration
	journal   *judge.Journal
	scene     *faults.Scene
	script    *faults.Script
	rand      *rand.Rand // of XIDs
	recovery  *recovery
	judge     *judge.Judge
	inspector *inspector
	rounds    int // played
}

func newPlayer(w *world, xids *faults.XIDs, j *judge.Judge, i *inspector, script *faults.Script, o *Options) *player {
	return &player{
		duration: o.Duration, journal: w.journal, script: script, rand: rand.New(rand.NewPCG(o.Seed, 1)), recovery: newRecovery(w), judge: j, inspector: i,
		scene: &faults.Scene{
			Fleet: w.fleet, Collectors: w.collectors, Recorder: w.outputs.Recorder, Audit: w.files.Audit(), XIDs: xids, Verdict: w.verdict,
		},
	}
}

// play waits until the fleet is whole and plays rounds until the time is over.
func (p *player) play(ctx context.Context) error {
	if err := p.recovery.first(ctx, p.journal); err != nil {
		return err
	}
	if err := p.rest(ctx); err != nil {
		return err
	}
	for since := p.journal.Started; time.Since(since) < p.duration; {
		if !p.script.Calm && p.script.Drawn() && time.Since(since) > p.duration*3/5 {
			p.script.Calm = true
			p.journal.Logf("from here on no collector is restarted: what each takes is compared over a long life")
		}
		if err := p.round(ctx, p.script.Next()); err != nil {
			return err
		}
		if err := p.rest(ctx); err != nil {
			return err
		}
	}
	return nil
}

// round plays faults, waits until the fleet is whole again, and compares.
func (p *player) round(ctx context.Context, round []*faults.Fault) error {
	verdict, xids := p.scene.Verdict, p.scene.XIDs
	p.rounds = verdict.Round(len(round))
	var list []string
	bound := time.Duration(0)
	for _, f := range round {
		list = append(list, fmt.Sprintf("%s for %.1f s", f, f.Last.Seconds()))
		bound = max(bound, f.Recovery())
	}
	p.journal.Logf("round %d: %s", p.rounds, strings.Join(list, ", "))
	began := time.Now()
	xids.BeginRound()
	if err := p.overlap(ctx, round, began); err != nil {
		return err
	}
	over := time.Now()
	if err := p.recovery.wait(ctx, xids.OfRound(), over, bound); err != nil {
		return err
	}
	took := time.Since(over)
	verdict.Count(func(c *judge.Counts) { c.Probes += len(xids.OfRound()) })
	var recovered []judge.Recovery
	for _, f := range round {
		f.CheckCounted(ctx, p.scene)
		recovered = append(recovered, judge.Recovery{Kind: f.Name(), Allowed: p.recovery.allowed(f.Recovery())})
	}
	p.judge.PartialEvents(began)
	verdict.Recovered(recovered, took)
	return nil
}

// overlap begins and ends the faults of a round that began at some time. In its midst
// a GPU reports an XID.
func (p *player) overlap(ctx context.Context, round []*faults.Fault, began time.Time) error {
	// A fault that takes a while to begin lasts as long all the same.
	due := map[*faults.Fault]time.Time{}
	for _, f := range round {
		due[f] = began.Add(f.At)
	}
	for n := 0; len(due) > 0; n++ {
		next := slices.MinFunc(slices.Collect(maps.Keys(due)), func(a, b *faults.Fault) int {
			return cmp.Or(due[a].Compare(due[b]), strings.Compare(a.String(), b.String()))
		})
		if wait := time.Until(due[next]); wait > 0 && !pace.Pause(ctx, wait) {
			return ctx.Err()
		}
		on, err := next.Toggle(ctx, p.scene)
		if err != nil {
			return fmt.Errorf("%s: %w", next, err)
		}
		if on {
			due[next] = time.Now().Add(next.Last)
		} else {
			delete(due, next)
		}
		if n == len(round)/2 {
			if err := p.inject(round); err != nil {
				return err
			}
		}
	}
	return nil
}

// inject lets a GPU of any node report an XID, unless a fault hides it.
func (p *player) inject(round []*faults.Fault) error {
	members := p.scene.Collectors.Members
	n := members[p.rand.IntN(len(members))]
	index := p.rand.IntN(4)
	if slices.ContainsFunc(round, func(f *faults.Fault) bool { return f.HidesXIDs(n) }) {
		return nil
	}
	return p.scene.XIDs.Inject(n.Node, index)
}

// rest leaves the fleet alone and inspects it.
func (p *player) rest(ctx context.Context) error {
	if !pace.Pause(ctx, quiet) {
		return ctx.Err()
	}
	p.inspector.measure(ctx)
	p.inspector.logs()
	p.inspector.console(ctx)
	p.inspector.store(ctx)
	if p.rounds%verifications == 0 {
		p.inspector.audit(ctx)
	}
	return nil
}
