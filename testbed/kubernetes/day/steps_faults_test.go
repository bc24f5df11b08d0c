// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package day

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

// What breaks: kubelet, API server, exporter.

// passes waits until these nodes have a point of every held device that is
// younger than a time.
func (w *world) passes(metric names.Metric, until time.Time, nodes ...*member) {
	w.t.Helper()
	states := map[string]ownership.State{}
	for _, n := range nodes {
		n.states(w.ledger, states)
	}
	w.eventually(metric.Name+" goes on", func(context.Context) error {
		w.latest.update(w)
		for id, s := range states {
			if p, ok := w.latest.points[latestKey{s.Node, id, metric.Name}]; len(s.Owners) > 0 && (!ok || p.Time.Before(until)) {
				return fmt.Errorf("last of %s at %v", id, p.Time)
			}
		}
		return nil
	})
}

// No point may lose its owner meanwhile: the last answer is trusted for three
// polls.
func (w *world) stepKubeletRestarts() {
	n := w.nodes[0]
	require.NoError(w.t, n.RestartKubelet(w.t.Context(), poll))
	again := time.Now().Add(2 * poll)
	w.passes(names.GPUAllocation, again, n)
	w.passes(names.GPUMemoryUsage, again, n)
}

// A kubelet that hangs. Its last answer is sent once more with the collection
// that follows, and trusted for three collections after that (max_age); then the
// owners are unknown, until it answers.
func (w *world) stepKubeletHangs() {
	n := w.nodes[0]
	from := time.Now()
	w.rules.Silences = append(w.rules.Silences, ownership.Silence{Node: n.Name(), From: from, Unknown: from.Add(4*collection + 2*slack)})
	silence := &w.rules.Silences[len(w.rules.Silences)-1]
	n.Kubelet().SetFaults(kubelet.Faults{Hang: true})
	states := map[string]ownership.State{}
	n.states(w.ledger, states)
	var last time.Time
	w.eventually("the owners are unknown", func(context.Context) error {
		w.latest.update(w)
		for id, s := range states {
			p := w.latest.points[latestKey{n.Name(), id, names.GPUMemoryUsage.Name}]
			if len(s.Owners) > 0 && (p.Owner != ownership.Owner{}) {
				return fmt.Errorf("%s: %s", id, p.Owner)
			}
			last = p.Time
		}
		return nil
	})
	w.t.Logf("unknown %v after the kubelet's last word, at the latest", last.Sub(from).Round(100*time.Millisecond))
	expected := w.verdict.Expected
	w.passes(names.GPUMemoryUsage, silence.Unknown.Add(3*collection), n)
	w.judge()
	assert.Greater(w.t, w.verdict.Expected, expected)
	n.Kubelet().SetFaults(kubelet.Faults{})
	silence.Until = time.Now()
}

// The kubelet alone reports who holds what; the API server is not needed for that.
func (w *world) stepAPIServerGone() {
	w.permitted() // one that has just started refuses everything for a moment
	require.NoError(w.t, w.StopAPIServer())
	later := time.Now().Add(3 * w.rules.Interval)
	w.passes(names.GPUAllocation, later, w.nodes...)
	w.passes(names.GPUMemoryUsage, later, w.nodes...)
	w.judge()
	require.NoError(w.t, w.StartAPIServer(w.t.Context()))
	w.scale("llama", 3)
	w.scale("llama", 2)
	w.held(w.nodes[0], 2)
}

// gpu.allocation goes on, whichever exporter comes and goes.
func (w *world) stepExporterDown() {
	n := w.nodes[0]
	down, err := n.Fleet().StartFault(gpusim.Fault{Node: n.Name(), Kind: gpusim.ExporterDown})
	require.NoError(w.t, err)
	w.waitFor(n, names.ExporterUp, 0)
	w.scale("llama", 4)
	w.settle(quiet{telemetry: n})
	w.scale("llama", 2)
	w.settle(quiet{telemetry: n})
	_, err = n.Fleet().EndFault(down.ID)
	require.NoError(w.t, err)
	w.waitFor(n, names.ExporterUp, 1)
}

// An exporter that repeats an old page still names pods that are gone.
func (w *world) stepExporterStale() {
	n := w.nodes[0]
	from := time.Now()
	frozen, err := n.Fleet().StartFault(gpusim.Fault{Node: n.Name(), Kind: gpusim.ExporterFrozen})
	require.NoError(w.t, err)
	w.scale("llama", 0)
	w.settle(quiet{})
	_, err = n.Fleet().EndFault(frozen.ID)
	require.NoError(w.t, err)
	w.exclude(n, from)
	w.scale("llama", 2)
}
