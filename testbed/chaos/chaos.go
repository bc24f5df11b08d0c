// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package chaos lets a simulated fleet live for hours while everything around it
// breaks, and judges all the time whether the collectors that watch it keep their
// promises.
//
// Run starts a gateway and an agent on each node, as processes of the real
// binary, on simulated GPUs, kubelets, an API server and webhooks. It plays
// rounds: some faults that overlap, then the time that the fleet may take to be
// whole again, then a while in which nothing happens. Judges that know the truth
// compare with it what the collectors report. All is drawn from a seed.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/faults"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/judge"
)

// Options of a run.
type Options struct {
	Bin      string // folder of otelcol-gpu and gpuctl
	Config   string // folder of agent.yaml and gateway.yaml
	Dir      string // empty folder for what the collectors write
	Duration time.Duration
	Seed     uint64 // of the fleet, the faults and their moments
	Only     string // kinds of faults that are drawn, comma-separated; empty: all
	Out      io.Writer
}

// ErrBroken is the error of a run that went to its end and found a violation.
var ErrBroken = errors.New("invariants were violated")

// Run plays rounds of faults until its time is over, and judges. The last line
// that it writes is the sum. Its error is ErrBroken if anything was violated, or
// returns why the run could not be made.
func Run(ctx context.Context, o Options) error {
	var names []string
	if o.Only != "" {
		names = strings.Split(o.Only, ",")
	}
	kinds, err := faults.Pick(names)
	if err != nil {
		return err
	}
	w, err := start(ctx, &o)
	defer w.close()
	if err != nil {
		return err
	}
	w.journal.Logf("seed %d, for %v: a second stands for an interval of 15 s; files are in %s", o.Seed, o.Duration, o.Dir)
	xids := faults.NewXIDs(w.verdict)
	evidence := judge.Evidence{
		Recorder: w.outputs.Recorder, Nodes: w.fleet.Names(), Ledger: w.fleet.Ledger, History: w.fleet.History, Chronicle: &judge.Chronicle{},
		AgentSince: w.collectors.AgentSince, XIDs: xids.All,
	}
	j := judge.New(evidence, w.verdict)
	i := newInspector(w)
	p := newPlayer(w, xids, j, i, faults.NewScript(o.Seed, w.collectors.Members, kinds), &o)

	watching, stop := context.WithCancel(ctx)
	defer stop()
	var watchers sync.WaitGroup
	watchers.Go(func() { watchMachine(watching, w.collectors.All(), w.fleet.History) })
	watchers.Go(func() { evidence.Chronicle.Watch(watching, w.fleet.Nodes) })
	watchers.Go(func() { j.Run(watching) })
	defer watchers.Wait()
	defer stop()
	if err := p.play(ctx); err != nil {
		return err
	}
	if err := finish(ctx, w, i); err != nil {
		return err
	}
	stop()
	watchers.Wait()

	w.verdict.ReportCounts()
	i.report()
	w.journal.Logf("the machine had no time for %.1f s in all", w.fleet.History.Stalled().Seconds())
	w.verdict.ReportViolations()
	broken := w.verdict.Violations() > 0
	if broken {
		w.journal.Logf("see it again with: make chaos DURATION=%v SEED=%d", o.Duration, o.Seed)
	}
	fmt.Fprintln(o.Out, w.verdict.Summary(len(w.outputs.Recorder.Events())))
	if broken {
		return ErrBroken
	}
	return nil
}

// finish waits until all events are delivered, ends the collectors in good order, and
// judges what they leave.
func finish(ctx context.Context, w *world, i *inspector) error {
	w.journal.Logf("the last round is over; waiting until everything was delivered")
	d := &deliveries{
		collectors: w.collectors, recorder: w.outputs.Recorder, webhooks: w.outputs.Webhooks,
		audit: w.files.Audit(), verdict: w.verdict, journal: w.journal,
	}
	if err := d.wait(ctx); err != nil {
		return err
	}
	w.collectors.TerminateAll()
	i.logs()
	i.audit(ctx)
	return d.judge()
}
