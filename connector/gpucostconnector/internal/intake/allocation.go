// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
	"github.com/otelcol-gpu/otelcol-gpu/internal/migprofile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/partition"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// snapshots adds snapshots of nodes to a ledger.
type snapshots struct {
	fleet
	ledger *ledger.Ledger
	point  ledger.Point // that is made next
}

// allocation is a point of gpu.allocation.
type allocation struct {
	id, parent, profile, resource, node string

	resolved    bool
	slurm       bool    // it is from Slurm
	nested      bool    // the job has it within a pod, which has it too
	partitioned bool    // a scheduler that divides boards granted a part of it
	share       float64 // of the device; 0: it is free
	memory      float64 // of the board, as the scheduler granted it
	cores       float64 // likewise; 0: they are not limited

	owner *owner // nil: it is free
}

// allocations reads the points of gpu.allocation of a resource.
func (x *snapshots) allocations(r *resource) {
	for _, sm := range r.rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			if m.Name() != names.GPUAllocation.Name {
				continue
			}
			dps, ok := points.Numbers(m)
			if !ok || points.IsDelta(m) {
				x.counts.Invalid++
				continue
			}
			for _, p := range dps.All() {
				x.allocation(r, p)
			}
		}
	}
}

func (x *snapshots) allocation(r *resource, p pmetric.NumberDataPoint) {
	at, ok := x.timeOf(p.Timestamp())
	if !ok {
		return
	}
	a := allocation{share: points.Value(p), node: r.node, resolved: true}
	a.read(p.Attributes())
	if a.id == "" {
		a.id = r.device
	}
	ended := p.Flags().NoRecordedValue()
	if ended && a.id != "" || a.nested {
		return // the end of a series: the next snapshot has what is now; or the pod has it
	}
	n := r.on
	if n == nil || n.key.name != a.node {
		if n = x.node(r.cluster, a.node); n == nil {
			return
		}
		r.on = n
	}
	if ended {
		switch {
		case a.slurm: // it knows nothing of what no job has
			x.turn(n, at)
		case at-n.reports[bySlurm] >= 5*minute || n.reports[bySlurm] == 0:
			x.empty(n, at)
		}
		n.reports[a.manager()] = max(n.reports[a.manager()], at)
		return
	}
	named := r.pod != "" || r.namespace != "" || r.slurm != ""
	if a.id == "" || tooLong(a.id) || !a.possible(named) {
		x.counts.Invalid++
		return
	}
	if named {
		if r.owner == nil {
			r.owner = x.ownerOf(r, byAllocation)
		}
		if a.owner = r.owner; a.owner == nil {
			x.counts.Invalid++
			return
		}
	}
	x.turn(n, at)
	n.reports[a.manager()] = max(n.reports[a.manager()], at)
	switch {
	case a.resolved:
		x.resolved(n, &a, at)
	case at == n.at:
		n.unresolve(&a)
	}
}

func (a *allocation) read(attrs pcommon.Map) {
	for k, v := range attrs.All() {
		switch k {
		case names.HwID:
			a.id = v.Str()
		case names.K8sNodeName:
			if a.node == "" {
				a.node = v.Str()
			}
		case names.HwParent:
			a.parent = v.Str()
		case names.GPUMIGProfile, names.GPUPartitionProfile:
			a.profile = v.Str()
		case names.K8sResourceName:
			a.resource = v.Str()
		case names.GPUAllocationResolved:
			a.resolved = v.Type() != pcommon.ValueTypeBool || v.Bool()
		case names.GPUAttributionSource:
			a.partitioned = a.partitioned || v.Str() == names.SourceAnnotation
			a.slurm = strings.HasPrefix(v.Str(), names.SourceSlurm)
		case names.GPUAllocationNested:
			a.nested = v.Type() == pcommon.ValueTypeBool && v.Bool()
		case names.GPUAllocationShare:
			a.partitioned, a.memory = true, number(v)
		case names.GPUAllocationShareCores:
			a.cores = number(v)
		}
	}
	if a.profile == "" {
		a.profile = cmp.Or(migprofile.Resource(a.resource), partition.Mode(a.resource))
	}
}

func number(v pcommon.Value) float64 {
	switch v.Type() {
	case pcommon.ValueTypeDouble:
		return v.Double()
	case pcommon.ValueTypeInt:
		return float64(v.Int())
	}
	return math.NaN()
}

// possible reports whether the share can be true: an owner has a part of the device, and a
// device without an owner is free.
func (a *allocation) possible(named bool) bool {
	const rounding = 1e-6
	if !named {
		return a.share == 0
	}
	return a.share > 0 && a.share <= 1+rounding // NaN is neither
}

// turn makes the snapshot at a time the node's newest, if it is. A late point of an older one
// may still be of use to the ledger, which decides for each board.
func (x *snapshots) turn(n *node, at int64) {
	if at > n.at {
		x.complete(n)
		n.before, n.at = n.at, at
	}
	n.listed, n.empty = max(n.listed, at), false
}

// empty reads that a node has no devices.
func (x *snapshots) empty(n *node, at int64) {
	if at <= n.at {
		return
	}
	x.complete(n)
	n.before, n.at, n.listed, n.empty = n.at, at, at, true
	for _, b := range n.boards {
		b.listed = false
	}
	x.ledger.Empty(n.key.cluster, n.key.name, at)
}

// resolved reads a point of a device that the kubelet, or a processor before, could name.
func (x *snapshots) resolved(n *node, a *allocation, at int64) {
	is := placeOf(a.id, a.parent)
	if a.partitioned && a.owner != nil && !x.partition(n, a, &is, at) {
		x.counts.Unresolved++
		n.unresolve(a)
		return
	}
	b := x.board(is.board)
	if b == nil {
		return
	}
	n.take(b)
	if a.owner != nil {
		b.held[a.manager()] = max(b.held[a.manager()], at)
	} else if b.givenAway(n, a, at) {
		return
	}
	b.named, b.listed = max(b.named, at), true
	x.fill(n, a.owner, at)
	p := &x.point
	p.Board, p.Ref, p.Part, p.Share, p.Listed = b.id, &b.ref, is.part, share.Whole, true
	switch {
	case a.partitioned && a.owner != nil && (is.part == b.id || is.device == b.id):
		if p.Share = a.granted(x.cfg.VGPUShare); is.part == b.id && p.Share != share.Whole {
			p.Part = a.owner.partition(b.id) // parts without a number
		}
	case is.part != b.id:
		x.part(b, a, &is, at)
	case a.slurm && a.share < 1-1e-6 && a.owner != nil:
		if of, ok := share.FromFloat(a.share); ok {
			p.Part, p.Share = a.owner.partition(b.id), of // shards
		}
	}
	p.Class = x.classOf(b)
	x.claim(n, b)
}

// claim adds the scratch point, a part of a board in the newest snapshot of a manager. What the
// other manager of the node has given away of the board is added at the same time: a part that a
// pod and a job have is contested, and is not in turn that of each.
func (x *snapshots) claim(n *node, b *board) {
	at, manager := x.point.Time, byKubelet
	if x.point.Owner != nil && x.point.Owner.SlurmCluster != "" {
		manager = bySlurm
	}
	claims := b.claims[manager]
	late := len(claims) > 0 && claims[0].Time > at
	if x.point.State != ledger.Held || n.reports[managers-1-manager] == 0 || late {
		x.ledger.Add(&x.point)
		return
	}
	b.claims[manager] = remember(claims, &x.point)
	for by, points := range b.claims { // always in the same order
		newest := by == manager || len(points) > 0 && points[0].Time == n.reports[by] && at-points[0].Time < 5*minute
		for i := range points {
			if x.point = points[i]; newest {
				x.point.Time = at
				x.ledger.Add(&x.point)
			}
		}
	}
}

// fill makes the scratch point one of an owner, or a free one, without what is about the
// device.
func (x *snapshots) fill(n *node, o *owner, at int64) {
	x.point = ledger.Point{Cluster: n.key.cluster, Node: n.key.name, Time: at, State: ledger.Free, Rest: ledger.Free}
	if o != nil {
		x.point.State, x.point.Owner = ledger.Held, o.is
	}
}

// part completes the scratch point for an instance of a board, or for a replica of a device.
func (x *snapshots) part(b *board, a *allocation, is *place, at int64) {
	p := &x.point
	device := is.part
	if is.device != "" {
		device = is.device
	}
	d := b.part(device)
	if d == nil {
		x.counts.Refused++
		p.State, p.Owner, p.Part, p.Rest = ledger.Unknown, nil, b.id, ledger.Unknown
		return
	}
	d.named = max(d.named, at)
	if device != b.id {
		d.describe(a.profile)
		known := false
		p.Profile, p.Rest = d.profile, ledger.Stranded
		if p.Share, known = x.instance(b, d); !known {
			b.vague = at
			// What is not known cannot be divided: all that is not another part's is
			// unknown, and so is where the owner's part is.
			p.State, p.Owner = ledger.Unknown, nil
			if a.owner != nil {
				x.counts.Unresolved++
				b.node.unresolve(a)
			}
		}
		p.Estimated = d.estimated
		if b.vague != 0 && b.vague >= b.node.before {
			p.Rest = ledger.Unknown
		}
	}
	if is.device != "" {
		if a.share > 0 {
			d.replicas = int32(min(math.Round(1/a.share), maxParts))
		}
		p.Device, p.Replicas = d.id, int(max(d.replicas, 1))
	} else if a.share > 0 && a.share < 1-1e-6 {
		// Equal parts without a number, such as the compute instances of one MIG instance.
		if of, ok := share.FromFloat(a.share); ok {
			p.Part, p.Share = a.owner.partition(device), p.Share.Times(of)
		}
	}
}

// granted is the share of a software partition.
func (a *allocation) granted(by share.VGPUBy) share.Fraction {
	memory, ok := share.FromFloat(a.memory)
	if !ok {
		memory, _ = share.FromFloat(min(a.share, 1))
	}
	cores, _ := share.FromFloat(a.cores)
	return share.Partition(memory, cores, by)
}

// partition reports whether a granted part of a board can be true: the node has the board,
// and the share is one.
func (x *snapshots) partition(n *node, a *allocation, is *place, at int64) bool {
	if is.part != is.board && is.device == "" {
		return true // an instance that a scheduler granted
	}
	if a.memory != 0 && !(a.memory > 0 && a.memory <= 1) || !(a.cores >= 0 && a.cores <= 1) {
		return false
	}
	if b := x.boards[is.board]; b != nil {
		return b.node == nil || b.node == n
	}
	// Telemetry of the node's boards is there, and this one is not among them.
	return !n.hasTelemetry(at)
}
