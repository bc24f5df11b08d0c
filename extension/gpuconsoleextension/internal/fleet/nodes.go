// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/conditions"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// node is what is known of a node.
type node struct {
	id               place
	seen             time.Time // newest telemetry of its devices
	allocated        time.Time // newest word of the kubelet
	exporter         consoleapi.ExporterState
	exporterSeen     time.Time
	frozenSince      time.Time // of its exporter
	suspect          bool      // an exporter is down that may be its own
	schedulable      *bool
	migReconfiguring *bool
	devices          []*device
}

func (inv *inventory) node(id place) *node {
	n := inv.nodes[id]
	if n == nil {
		n = &node{id: id, exporter: consoleapi.ExporterUnknown}
		inv.nodes[id] = n
	}
	return n
}

func (r *reading) seenOfNode(inv *inventory, m model.Metric, t time.Time) {
	if name := nodeName(m); name != "" {
		n := inv.node(place{string(m[queries.Cluster]), name})
		if t.After(n.allocated) {
			n.allocated = t
		}
	}
}

// putNodes notes the states of nodes and gives them their exporters.
func (r *reading) putNodes(inv *inventory, a *inventoryAnswers) {
	for _, sample := range *a.nodeTimes {
		r.seenOfNode(inv, sample.Metric, seconds(sample.Value))
	}
	for _, sample := range *a.exporters {
		m, on := sample.Metric, pointer(sample.Value != 0)
		name := string(m[model.MetricNameLabel])
		if name != queries.Schedulable && name != queries.Reconfiguring || nodeName(m) == "" {
			continue
		}
		n := inv.node(place{string(m[queries.Cluster]), nodeName(m)})
		if name == queries.Schedulable {
			n.schedulable = on
		} else {
			n.migReconfiguring = on
		}
	}
	for _, d := range inv.devices {
		if n := inv.node(d.node); d.seen.After(n.seen) {
			n.seen = d.seen
		}
	}
}

// state is that of the node.
func (r *reading) nodeState(n *node) consoleapi.NodeState {
	switch {
	case !r.fresh(n.seen) && !r.fresh(n.allocated) && !r.fresh(n.exporterSeen):
		if r.unstored.Excuses(n.newestWord()) {
			return consoleapi.NodeUnknown
		}
		return consoleapi.NodeLost
	case n.exporter == consoleapi.ExporterDown || n.suspect && !r.fresh(n.seen):
		return consoleapi.NodeExporterDown
	case n.exporter == consoleapi.ExporterFrozen:
		return consoleapi.NodeExporterFrozen
	default:
		return consoleapi.NodeOK
	}
}

// newestWord is when a node was last seen by any source.
func (n *node) newestWord() time.Time {
	t := n.seen
	for _, other := range []time.Time{n.allocated, n.exporterSeen} {
		if other.After(t) {
			t = other
		}
	}
	return t
}

// dataTime is that of the newest telemetry of its devices; without any, of what
// else names the node.
func (n *node) dataTime() time.Time {
	for _, t := range []time.Time{n.seen, n.allocated} {
		if !t.IsZero() {
			return t
		}
	}
	return n.exporterSeen
}

// counts are a node's physical devices by state.
func (n *node) counts() consoleapi.NodeCounts {
	var c consoleapi.NodeCounts
	for _, d := range n.devices {
		if d.parent != "" {
			continue
		}
		c.Devices++
		switch d.overall() {
		case consoleapi.DeviceFree:
			c.Free++
		case consoleapi.DeviceIdle:
			c.Idle++
			c.Held++
		case consoleapi.DeviceHeld:
			c.Held++
		case consoleapi.DeviceLost:
			c.Lost++
		default:
			c.Unknown++
		}
	}
	return c
}

// compareDevices orders by index, then id; parts stand behind their device.
func compareDevices(a, b *device) int {
	index := func(d *device) int {
		i, err := strconv.Atoi(string(d.identity[queries.Index]))
		if err != nil {
			return 1 << 30
		}
		return i
	}
	root := func(d *device) string {
		gpu, _, _ := strings.Cut(d.id.name, "::")
		gpu, _, _ = strings.Cut(gpu, "/")
		return gpu
	}
	return cmp.Or(cmp.Compare(index(a), index(b)), cmp.Compare(root(a), root(b)), compareNatural(a.id.name, b.id.name))
}

// compareNatural compares texts that may end in numbers.
func compareNatural(a, b string) int {
	number := func(s string) (string, int) {
		i := len(s)
		for i > 0 && s[i-1] >= '0' && s[i-1] <= '9' {
			i--
		}
		n, err := strconv.Atoi(s[i:])
		if err != nil {
			return s, 0
		}
		return s[:i], n
	}
	textA, numberA := number(a)
	textB, numberB := number(b)
	return cmp.Or(cmp.Compare(textA, textB), cmp.Compare(numberA, numberB), cmp.Compare(a, b))
}

// Nodes are all nodes that match.
type Nodes struct {
	reading *reading
	list    []*node
	wrong   *conditions.Fleet
	reasons map[*node][]consoleapi.Reason
	Pending consoleapi.Pending
	// Exporters that no node is known of.
	Exporters []consoleapi.Exporter
}

// Nodes reads all nodes with a text in their name or cluster, those that need
// attention first; or one that is named.
func (r *Reader) Nodes(ctx context.Context, match string, named *Where) (*Nodes, error) {
	reading := r.read(ctx)
	attention := reading.askAttention(queries.All)
	found, inv, err := reading.fleet(ctx)
	if err != nil {
		return nil, err
	}
	wrong, err := attention(ctx, inv)
	if err != nil {
		return nil, err
	}
	out := &Nodes{reading: reading, wrong: wrong, reasons: map[*node][]consoleapi.Reason{}, Pending: pending(found)}
	match = strings.ToLower(match)
	out.Exporters = reading.strays(inv, match)
	for _, n := range inv.nodes {
		if n.newestWord().IsZero() || match != "" && !contains(match, n.id.name, n.id.cluster) || named != nil && !named.selects(n) {
			continue
		}
		reading.used(n.dataTime())
		out.reasons[n] = wrong.Node(n.id.shown())
		out.list = append(out.list, n)
	}
	slices.SortFunc(out.list, func(a, b *node) int {
		return cmp.Or(compareReasons(out.reasons[a], out.reasons[b]), cmp.Compare(a.id.name, b.id.name), cmp.Compare(a.id.cluster, b.id.cluster))
	})
	return out, nil
}

// state of a node: one that reports may have something wrong with it.
func (n *Nodes) state(of *node) consoleapi.NodeState {
	state := n.reading.nodeState(of)
	if state == consoleapi.NodeOK && consoleapi.Pressing(n.reasons[of]) {
		return consoleapi.NodeDegraded
	}
	return state
}

// Freshness of the nodes.
func (n *Nodes) Freshness() consoleapi.Freshness { return n.reading.freshness() }

// Len is how many there are.
func (n *Nodes) Len() int { return len(n.list) }

// Key distinguishes one from all others.
func (n *Nodes) Key(i int) string { return n.list[i].id.cluster + "\x00" + n.list[i].id.name }

// Page returns some of them with the gauges of their devices.
func (n *Nodes) Page(ctx context.Context, from, to int) ([]consoleapi.Node, error) {
	list := n.list[from:to]
	var devices []*device
	for _, one := range list {
		devices = append(devices, one.devices...)
	}
	shown, err := n.reading.show(ctx, devices)
	if err != nil {
		return nil, err
	}
	out := make([]consoleapi.Node, 0, len(list))
	for _, one := range list {
		slices.SortFunc(one.devices, compareDevices)
		node := consoleapi.Node{
			Cluster: text(model.LabelValue(one.id.cluster)), Node: one.id.name, State: n.state(one), Exporter: one.exporter,
			Schedulable: one.schedulable, MIGReconfiguring: one.migReconfiguring, Counts: one.counts(), Reasons: n.reasons[one],
			Devices: make([]consoleapi.Device, 0, len(one.devices)), Told: n.reading.reported(one.dataTime()),
		}
		var boards []*device
		for _, d := range one.devices {
			device := shown[d]
			device.Reasons = n.wrong.Device(d.id.shown())
			node.Devices = append(node.Devices, device)
			if d.parent == "" {
				boards = append(boards, d)
			}
		}
		if one.exporter == consoleapi.ExporterFrozen && one.frozenSince.Before(one.dataTime()) {
			node.Told = n.reading.reported(one.frozenSince)
			node.Stale = true
		}
		node.Values, node.Coverage = over(n.reading.measured(boards, shown))
		out = append(out, node)
	}
	return out, nil
}

// maxPending is how many services with pending pods are named.
const maxPending = 50

// pending returns the pods that no node has accepted.
func pending(services []*service) consoleapi.Pending {
	p := consoleapi.Pending{Services: []consoleapi.PendingService{}}
	for _, s := range services {
		if s.Pods.Pending == nil {
			continue
		}
		p.Pods = pointer(zero(p.Pods) + *s.Pods.Pending)
		if *s.Pods.Pending > 0 {
			p.Services = append(p.Services, consoleapi.PendingService{Cluster: s.Cluster, Namespace: s.Namespace, Service: s.Service.Service, Pods: *s.Pods.Pending})
		}
	}
	slices.SortStableFunc(p.Services, func(a, b consoleapi.PendingService) int { return cmp.Compare(b.Pods, a.Pods) })
	p.Services = p.Services[:min(len(p.Services), maxPending)]
	return p
}

func zero(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}
