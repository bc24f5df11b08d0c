// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/collectors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/history"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/judge"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// errTaken is that another program took a port between our looking and using it.
var errTaken = errors.New("another program took a port of a collector")

// world is all that a run starts, for those that play and judge it to take their parts
// from.
type world struct {
	journal    *judge.Journal
	verdict    *judge.Verdict
	files      collectors.Files
	outputs    *collectors.Outputs
	fleet      *fleet.Fleet
	collectors *collectors.Collectors
}

// start opens a world and waits until its collectors answer; once more, on other ports,
// where another program took one. close ends it, also after an error.
func start(ctx context.Context, o *Options) (*world, error) {
	for tries := 0; ; tries++ {
		w, err := open(ctx, o)
		if err == nil {
			err = w.up(ctx)
		}
		if !errors.Is(err, errTaken) || tries == 3 {
			return w, err
		}
		w.close()
	}
}

func open(ctx context.Context, o *Options) (w *world, err error) {
	w = &world{
		journal: &judge.Journal{Started: time.Now(), Out: o.Out},
		files:   collectors.Files{Bin: o.Bin, Config: o.Config, Dir: o.Dir},
	}
	w.verdict = judge.NewVerdict(w.journal, o.Seed)
	if err := w.files.Prepare(ctx); err != nil {
		return w, err
	}
	if w.outputs, err = collectors.OpenOutputs(o.Seed, o.Duration); err != nil {
		return w, err
	}
	ports, err := collector.Free(fleet.Ports() + collectors.Ports(fleet.Size()))
	if err != nil {
		return w, err
	}
	port := func() int { next := ports[0]; ports = ports[1:]; return next }
	if w.fleet, err = fleet.Open(o.Seed, w.files.Kubeconfig(), port); err != nil {
		return w, err
	}
	if w.collectors, err = collectors.New(w.fleet, w.files, w.outputs, port, w.verdict); err != nil {
		return w, err
	}
	for _, place := range append(w.fleet.Names(), history.Gateway) {
		w.fleet.History.Disturb(place, time.Now())
	}
	return w, w.collectors.Start()
}

// up waits until all collectors answer.
func (w *world) up(ctx context.Context) error {
	for began := time.Now(); time.Since(began) < 2*time.Minute; {
		if w.collectors.PortTaken() {
			return errTaken
		}
		if w.collectors.Ready(ctx) {
			return nil
		}
		if !pace.Pause(ctx, pace.Interval/10) {
			return ctx.Err()
		}
	}
	return nil // what is wrong is for recovery to report
}

// close ends everything that runs.
func (w *world) close() {
	if w.collectors != nil {
		w.collectors.Close()
	}
	if w.fleet != nil {
		w.fleet.Close()
	}
	if w.outputs != nil {
		w.outputs.Close()
	}
}
