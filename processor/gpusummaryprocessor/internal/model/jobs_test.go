// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

// placed are pods by the node where they stay, which all that is observed of them names; those of
// Slurm are jobs instead, and their namespace is their account.
type placed struct {
	node  map[podKey]string
	slurm map[podKey]bool
}

// put writes where the pod of a resource is, and that it is a job.
func (p placed) put(attrs pcommon.Map, pod podKey) {
	putNotEmpty(attrs, names.K8sNodeName, p.node[pod])
	if p.slurm[pod] {
		attrs.Remove(names.K8sNamespaceName)
		attrs.Remove(names.K8sPodName)
		attrs.PutStr(names.SlurmClusterName, "hpc")
		attrs.PutStr(names.SlurmJobID, pod.name)
		attrs.PutStr(names.ServiceNamespace, pod.namespace)
	}
}

// mixed makes w a world in which some pods may be jobs, no pod has a uid and each stays on one node
// and has a service, and picks those of every other seed's half: pods that share a board or a node are jobs together or not at
// all. of has what concerns the jobs, or what does not.
func mixed(w world, seed uint64) (p placed, of func(job bool) world) {
	nodes, groups, together := map[podKey]string{}, map[podKey]podKey{}, map[string]podKey{}
	group := func(k podKey) podKey {
		for groups[k] != (podKey{}) {
			k = groups[k]
		}
		return k
	}
	services := map[podKey]string{}
	for i, f := range w.facts {
		k := f.pod()
		if f.point != nil && f.point.service != "" {
			services[k] = f.point.service
		}
		if f.point != nil {
			p := *f.point
			if nodes[k] == "" {
				nodes[k] = p.node
			}
			p.uid, p.node, w.facts[i].point = "", nodes[k], &p
		}
		if f.announcement != nil {
			a := *f.announcement
			a.uid, w.facts[i].announcement = "", &a
			if a.service == "" { // an announcement of a job without a service names no owner
				a.service = cmp.Or(services[k], "api")
			}
		}
		if k.name == "" {
			continue
		}
		board, _, _ := strings.Cut(strings.TrimPrefix(f.device(), "node/"), "/")
		for _, place := range []string{"device " + board, "node " + k.cluster + "/" + nodes[k]} {
			if other, known := together[place]; known && group(other) != group(k) {
				groups[group(k)] = group(other)
			}
			together[place] = k
		}
	}
	is := func(k podKey) bool {
		k = group(k)
		return k.name != "" && (uint64(k.name[len(k.name)-1])+seed)%2 == 0
	}
	jobs := map[podKey]bool{}
	for _, f := range w.facts {
		if k := f.pod(); is(k) {
			jobs[k] = true
		}
	}
	return placed{nodes, jobs}, func(job bool) world {
		return w.without(func(f fact) bool { return f.pod().name != "" && jobs[f.pod()] != job })
	}
}

// reports are what the summary has at each evaluation of a world with such jobs.
func reports(t *testing.T, w world, p placed, seed uint64) (all []map[string]float64) {
	s := newSubject(w.cfg, seed)
	s.placed = p
	for i, f := range w.facts {
		switch {
		case f.evaluate:
			got, fault := s.evaluate(f.at)
			require.Empty(t, fault)
			all = append(all, got)
		case f.step != 0:
			s.offset += f.step
			s.summary.Shift(f.step)
		case f.pods == nil:
			s.observe(w.facts[i:i+1], f.at)
		}
	}
	return all
}

// A world in which some pods are jobs has the figures of its pods without the jobs, and of its
// jobs as if they were pods: of a service in a namespace and one in an account of its name, none
// gets what is the other's.
func TestJobsAreLikePods(t *testing.T) {
	worlds, services := 0, 0
	for seed := range uint64(400) {
		w := generate(seed)
		p, of := mixed(w, seed)
		if w.cfg.Expected == summary.Kubernetes || len(p.slurm) == 0 {
			continue
		}
		worlds++
		pods, alone, both := reports(t, of(false), placed{node: p.node}, seed), reports(t, of(true), placed{node: p.node}, seed), reports(t, w, p, seed)
		require.Len(t, both, len(pods))
		for i, got := range both {
			want := maps.Clone(pods[i])
			for series, v := range alone[i] {
				want["hpc "+series] = v
				services++
			}
			require.Empty(t, difference(want, got), "seed %d, evaluation %d of %d, jobs %v\n%s", seed, i, len(both), slices.Collect(maps.Keys(p.slurm)), w)
		}
	}
	require.Greater(t, worlds, 40)
	require.Positive(t, services)
}
