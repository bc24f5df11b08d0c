// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package day

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/node"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

// A day in the life of a cluster. One step builds on the one before; each is
// judged alone, over all points that arrived in it.
func TestDay(t *testing.T) {
	w := newWorld(t,
		node.Options{Name: "whole", Model: "H100", GPUs: 8},
		node.Options{Name: "mig", Model: "A100-SXM4-80GB", GPUs: 2, MIG: map[int][]string{0: {"3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"}}},
		node.Options{Name: "dra", Model: "H200", GPUs: 4, DRA: true},
	)
	for _, step := range []struct {
		name string
		play func(*world)
	}{
		{"a cluster without pods", func(*world) {}},
		{"deploy", (*world).stepDeploy},
		{"scale up and down", (*world).stepScale},
		{"rolling update", (*world).stepRollOut},
		{"a job completes", (*world).stepJob},
		{"a pod is replaced under its name", (*world).stepReplaced},
		{"MIG instances are held", (*world).stepMIG},
		{"a ResourceClaim is held", (*world).stepClaim},
		{"an extended resource comes from DRA", (*world).stepExtended},
		{"adminAccess holds nothing", (*world).stepAdmin},
		{"the kubelet restarts", (*world).stepKubeletRestarts},
		{"the kubelet hangs", (*world).stepKubeletHangs},
		{"the API server is gone", (*world).stepAPIServerGone},
		{"the exporter is down", (*world).stepExporterDown},
		{"the exporter shows who was", (*world).stepExporterStale},
		{"a node is drained", (*world).stepDrain},
		{"MIG is reconfigured", (*world).stepMIGReconfigured},
		{"time-slicing", (*world).stepTimeSlicing},
		{"MPS", (*world).stepMPS},
		{"whole again", (*world).stepWhole},
		{"delete", (*world).stepDelete},
	} {
		ok := t.Run(step.name, func(t *testing.T) {
			w.t = t
			step.play(w)
			w.settle(quiet{})
			w.judge()
		})
		w.t = t
		if !ok {
			break // the others stand on it
		}
	}
	t.Run("every series once, ended once", func(t *testing.T) {
		e := ownership.Follow(w.recorder.Since(0), w.ledger, w.rules.Interval)
		w.report(e.String(), e.Findings...)
		assert.NotZero(t, e.Ended)
		assert.Zero(t, e.Faults, "the log of TestDay has the series")
	})
	t.Run("sums over physical devices", func(t *testing.T) {
		s := ownership.CompareSums(w.whole(), w.chronicle)
		w.report(s.String(), s.Findings...)
		assert.NotZero(t, s.Sums)
		assert.Zero(t, s.Wrong, "the log of TestDay has the sums")
	})
	w.report(ownership.Latency(w.recorder.Since(0), w.ledger.Placements()).In(w.rules.Interval))
	var findings []string
	for _, f := range w.verdict.Findings {
		findings = append(findings, f.String())
	}
	w.report(w.verdict.String(), findings...)
}

// judge judges what has arrived since it was called last.
func (w *world) judge() {
	w.t.Helper()
	points := w.recorder.Since(w.judged)
	w.judged += len(points)
	v := ownership.Judge(points, w.ledger, w.rules)
	w.verdict.Add(v)
	w.t.Log(v)
	assert.NotZero(w.t, v.Points)
	assert.Zero(w.t, v.Wrong+v.Stale+v.Unknown, "%q", v.Findings)
}

// whole are the points without those of exporters with a frozen page,
// and without the newest, of which parts may be under way.
func (w *world) whole() (out []ownership.Point) {
	all := w.recorder.Since(0)
	end := time.Now().Add(-w.rules.Interval)
	for i := range all {
		p := &all[i]
		in := p.Time.Before(end)
		for _, x := range w.excluded {
			in = in && (p.Node != x.Node || p.Time.Before(x.From) || p.Time.After(x.Until))
		}
		if in {
			out = append(out, *p)
		}
	}
	return out
}

// exclude records that the exporter of a node had a frozen page since a time.
func (w *world) exclude(n *member, from time.Time) {
	w.excluded = append(w.excluded, ownership.Silence{Node: n.Name(), From: from, Until: time.Now().Add(slack)})
}

func (w *world) stepDeploy() {
	n := w.nodes[0]
	w.deploy("llama", 3, template("llama", n, gpu, 1))
	w.held(n, 3)
	w.settle(quiet{})
	services := map[string]int{}
	for _, s := range w.ledger.Now() {
		for _, h := range s.Owners {
			p, ok := w.sees(n, h)
			require.True(w.t, ok)
			services[p.Service]++
		}
	}
	assert.Equal(w.t, map[string]int{"llama": 3}, services)
}

// sees is the newest telemetry of an owner.
func (w *world) sees(n *member, h ownership.Owner) (ownership.Point, bool) {
	for key, p := range w.latest.points {
		if key.node == n.Name() && key.metric == names.GPUMemoryUsage.Name && p.Owner.Is(h) {
			return p, true
		}
	}
	return ownership.Point{}, false
}

func (w *world) stepScale() {
	n := w.nodes[0]
	w.scale("llama", 6)
	w.held(n, 6)
	w.settle(quiet{})
	w.scale("llama", 2)
	w.held(n, 2)
}

func (w *world) stepRollOut() {
	w.rollOut("llama", 2)
	w.held(w.nodes[0], 2)
}

func (w *world) stepJob() {
	n := w.nodes[0]
	w.job("train", template("train", n, gpu, 4), 4*time.Second)
	w.held(n, 6)
	w.settle(quiet{})
	w.completed("train")
	w.held(n, 2)
}

func (w *world) stepReplaced() {
	n := w.nodes[0]
	w.statefulSet("db", template("db", n, gpu, 1))
	uid := w.running("db-0", "")
	w.held(n, 3)
	w.settle(quiet{})
	w.deletePod("db-0")
	again := w.running("db-0", uid)
	w.held(n, 3)
	w.eventually("the new pod's uid", func(context.Context) error {
		w.latest.update(w)
		if p, ok := w.sees(n, ownership.Owner{Namespace: namespace, Pod: "db-0", Container: "main", UID: string(again)}); !ok || p.Owner.UID == "" {
			return fmt.Errorf("last: %s", p.Owner)
		}
		return nil
	})
	w.removeSet("db")
	w.held(n, 2)
}

func (w *world) stepDelete() {
	for _, name := range []string{"llama", "shared"} {
		w.remove(name)
	}
	w.held(w.nodes[0], 0)
}
