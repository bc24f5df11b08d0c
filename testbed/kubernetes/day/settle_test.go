// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package day

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

// patience bounds every wait. The longest is the one for controllers that lost
// the API server: they try again after ever longer times.
const patience = 4 * time.Minute

// eventually waits until done has no objection.
func (w *world) eventually(what string, done func(context.Context) error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	require.NoError(w.t, w.Wait(ctx, what, done))
}

// latest is the newest point of every series that a step waits for.
type latest struct {
	read   int
	points map[latestKey]ownership.Point
}

type latestKey struct{ node, device, metric string }

func newLatest() *latest { return &latest{points: map[latestKey]ownership.Point{}} }

// update reads what has arrived since.
func (l *latest) update(w *world) {
	points := w.recorder.Since(l.read)
	l.read += len(points)
	aliases := w.ledger.Aliases()
	for _, p := range points {
		if p.Ended {
			continue
		}
		if name, ok := aliases[p.Device]; ok {
			p.Device = name
		}
		key := latestKey{p.Node, p.Device, p.Metric}
		if !p.Time.Before(l.points[key].Time) {
			l.points[key] = p
		}
	}
}

// reported is the newest point of a metric that is not about a device.
func (w *world) reported(n *member, metric names.Metric) (ownership.Point, bool) {
	w.latest.update(w)
	p, ok := w.latest.points[latestKey{n.Name(), "", metric.Name}]
	return p, ok
}

// waitFor waits until a node reports this value from now on.
func (w *world) waitFor(n *member, metric names.Metric, value float64) {
	w.t.Helper()
	from := time.Now()
	w.eventually(fmt.Sprintf("%s of %s is %v", metric.Name, n.Name(), value), func(context.Context) error {
		if p, ok := w.reported(n, metric); !ok || p.Value != value || p.Time.Before(from) {
			return fmt.Errorf("last: %v at %v", p.Value, p.Time)
		}
		return nil
	})
}

// quiet is what settle does not wait for, by node.
type quiet struct{ telemetry, allocation *member }

// settle waits until the wire has, of every device, what is true now: with
// points that are younger than this call and than the last change.
func (w *world) settle(q quiet) {
	w.t.Helper()
	w.look() // what happened until now is in the ledger
	called := time.Now()
	w.eventually("wire and truth agree", func(context.Context) error {
		w.latest.update(w)
		since := w.ledger.Changed()
		if since.Before(called) {
			since = called
		}
		for id, state := range w.ledger.Now() {
			if err := w.agrees(id, state, since, q); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *world) agrees(id string, state ownership.State, since time.Time, q quiet) error {
	newest := func(metric names.Metric) (ownership.Point, error) {
		p, ok := w.latest.points[latestKey{state.Node, id, metric.Name}]
		switch {
		case !ok:
			return p, fmt.Errorf("no %s of %s on %s", metric.Name, id, state.Node)
		case p.Time.Before(since):
			return p, fmt.Errorf("%s of %s on %s is not young enough", metric.Name, id, state.Node)
		}
		return p, nil
	}
	silent := func(n *member) bool { return n != nil && n.Name() == state.Node }
	replica := strings.Contains(id, "::")
	var errs []error
	if !state.Divided && !silent(q.allocation) {
		p, err := newest(names.GPUAllocation)
		switch {
		case err != nil:
		case len(state.Owners) == 0 && (p.Value != 0 || p.Owner != ownership.Owner{}),
			len(state.Owners) == 1 && (p.Value == 0 || !p.Owner.In(state)):
			err = fmt.Errorf("allocation of %s: %s with %v, it is %v", id, p.Owner, p.Value, state.Owners)
		}
		errs = append(errs, err)
	}
	if (!replica || len(state.Owners) > 0) && !silent(q.telemetry) {
		metric := names.GPUMemoryUsage
		if replica {
			metric = names.GPUUtilization
		}
		p, err := newest(metric)
		switch {
		case err != nil:
		case len(state.Owners) != 1 && p.Owner != ownership.Owner{}, len(state.Owners) == 1 && !p.Owner.In(state):
			err = fmt.Errorf("telemetry of %s: %s, it is %v", id, p.Owner, state.Owners)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
