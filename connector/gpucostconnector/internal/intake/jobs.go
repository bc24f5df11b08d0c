// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// managers of the devices of a node: the kubelet, and Slurm.
const (
	byKubelet = iota
	bySlurm
	managers
)

// reported is when each manager reported something last.
type reported [managers]int64

func (a *allocation) manager() int {
	if a.slurm {
		return bySlurm
	}
	return byKubelet
}

// nameJob makes a job of Slurm the owner that a resource names, if it names no pod: its
// account is the namespace, and it has a container's place, since it is no pod.
func (r *resource) nameJob() {
	id, cluster := points.Str(r.attrs, names.SlurmJobID), points.Str(r.attrs, names.SlurmClusterName)
	if id == "" || cluster == "" || r.pod != "" {
		return
	}
	r.slurm = cluster
	r.namespace = points.Str(r.attrs, names.SlurmJobAccount)
	r.container = "job " + id
}

// tenantOf is the attribute of a resource that a tenant is. The namespace of a job is its
// account.
func tenantOf(attrs pcommon.Map, key string) string {
	s := points.Str(attrs, key)
	if s == "" && key == names.K8sNamespaceName && points.Str(attrs, names.SlurmJobID) != "" {
		s = points.Str(attrs, names.SlurmJobAccount)
	}
	if strings.TrimFunc(s, invisible) == "" {
		return ""
	}
	return s
}

// remember adds a point to those of its snapshot.
func remember(claims []ledger.Point, p *ledger.Point) []ledger.Point {
	if len(claims) > 0 && claims[0].Time < p.Time {
		clear(claims)
		claims = claims[:0]
	}
	known := func(q ledger.Point) bool { return q.Part == p.Part && q.Owner == p.Owner }
	if len(claims) == maxParts || slices.ContainsFunc(claims, known) {
		return claims
	}
	kept := *p
	kept.Part, kept.Device, kept.Profile = strings.Clone(p.Part), strings.Clone(p.Device), strings.Clone(p.Profile)
	return append(claims, kept)
}

// givenAway reports whether the other manager of the node has given the board away, according
// to its newest snapshot: then it is not free.
func (b *board) givenAway(n *node, a *allocation, at int64) bool {
	other := managers - 1 - a.manager()
	return b.held[other] != 0 && b.held[other] == n.reports[other] && at-b.held[other] < 5*minute
}

// left reports whether Slurm's newest snapshot, which is complete, lacks the board that a job
// had in an earlier one. What no job has is free only where it is listed so, by Slurm or by the
// kubelet. It is missing only where telemetry shows other boards of the node.
func (b *board) left(n *node) bool {
	if n.reports[bySlurm] != n.at || b.held[bySlurm] == 0 || b.held[bySlurm] >= n.at || b.named >= n.at {
		return false
	}
	if b.named == n.reports[byKubelet] && n.at-b.named < 5*minute {
		return false
	}
	return b.shown(n) || !n.hasTelemetry(n.at)
}
