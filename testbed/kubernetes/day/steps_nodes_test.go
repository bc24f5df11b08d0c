// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package day

import (
	"context"
	"fmt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

// What is done to nodes: drained, cut into MIG instances, cut into replicas.

func (w *world) stepDrain() {
	n := w.nodes[0]
	w.waitFor(n, names.GPUNodeSchedulable, 1)
	require.NoError(w.t, w.Drain(w.t.Context(), n.Name()))
	w.held(n, 0)
	w.settle(quiet{})
	w.waitFor(n, names.GPUNodeSchedulable, 0)
	require.NoError(w.t, w.Cordon(w.t.Context(), n.Name(), false))
	w.runs("llama", 2)
	w.waitFor(n, names.GPUNodeSchedulable, 1)
}

func (w *world) stepMIG() {
	n := w.nodes[1]
	w.deploy("notebook", 2, template("notebook", n, "nvidia.com/mig-1g.10gb", 1))
	w.deploy("tuner", 1, template("tuner", n, "nvidia.com/mig-3g.40gb", 1))
	w.deploy("embedder", 1, template("embedder", n, gpu, 1))
	w.held(n, 4)
}

// The layout changes while the other GPU of the node goes on working.
func (w *world) stepMIGReconfigured() {
	n := w.nodes[1]
	w.remove("notebook")
	w.remove("tuner")
	w.held(n, 1)
	w.settle(quiet{})
	// The MIG manager takes minutes over it. This is that time.
	w.label(n.Name(), "nvidia.com/mig.config.state", "pending")
	w.waitFor(n, names.GPUNodeMIGReconfiguring, 1)
	require.NoError(w.t, n.Reconfigure(w.t.Context(), map[int][]string{0: {"4g.40gb", "2g.20gb"}}))
	w.waitFor(n, names.GPUNodeMIGReconfiguring, 0)
	w.deploy("notebook", 1, template("notebook", n, "nvidia.com/mig-2g.20gb", 1))
	w.held(n, 2)
}

// replicate cuts every device of a free node into replicas.
func (w *world) replicate(n *member, replicas int) {
	w.t.Helper()
	n.replicas.Store(int32(replicas))
	require.NoError(w.t, n.SetTimeSlicing(w.t.Context(), replicas))
}

// Ten pods on eight GPUs: some are alone on theirs, some are not.
func (w *world) stepTimeSlicing() {
	n := w.nodes[0]
	w.scale("llama", 0)
	w.held(n, 0)
	w.settle(quiet{})
	w.replicate(n, 2)
	w.deploy("shared", 10, template("shared", n, gpu, 1))
	w.held(n, 10)
	w.settle(quiet{})
	w.sharing(n, names.SharingTimeSlicing)
}

func (w *world) stepMPS() {
	n := w.nodes[0]
	w.label(n.Name(), "nvidia.com/gpu.sharing-strategy", "mps")
	w.sharing(n, names.SharingMPS)
}

func (w *world) stepWhole() {
	n := w.nodes[0]
	w.scale("shared", 0)
	w.held(n, 0)
	w.settle(quiet{})
	w.replicate(n, 1)
	w.scale("llama", 2)
	w.held(n, 2)
	w.settle(quiet{})
	w.sharing(n, names.SharingNone)
}

// sharing waits until every device of a node is reported as shared like that.
func (w *world) sharing(n *member, want string) {
	w.t.Helper()
	states := map[string]ownership.State{}
	n.states(w.ledger, states)
	devices := 0
	w.eventually(n.Name()+" shares by "+want, func(context.Context) error {
		w.latest.update(w)
		devices = 0
		for id, s := range states {
			if s.Divided {
				continue
			}
			devices++
			p := w.latest.points[latestKey{n.Name(), id, names.GPUAllocation.Name}]
			if got := p.Attribute(names.GPUSharing); got != want {
				return fmt.Errorf("%s: %q", id, got)
			}
		}
		return nil
	})
	assert.NotZero(w.t, devices)
}
