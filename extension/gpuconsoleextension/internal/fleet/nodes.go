// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/age"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// Nodes are all nodes that match.
type Nodes struct {
	reading *reading
	list    []*inventory.Node
	wrong   *wrong
	reasons map[*inventory.Node][]consoleapi.Reason
	Pending consoleapi.Pending
	// Exporters that no node is known of.
	Exporters []consoleapi.Exporter
}

func readNodes(ctx context.Context, r *reading, match string, named *Where, attention bool) (*Nodes, error) {
	find := r.askAttention(queries.All)
	found, inv, err := r.fleet(ctx)
	if err != nil {
		return nil, err
	}
	wrong, err := find(ctx, inv)
	if err != nil {
		return nil, err
	}
	out := &Nodes{reading: r, wrong: wrong, reasons: map[*inventory.Node][]consoleapi.Reason{}, Pending: pending(found)}
	match = strings.ToLower(match)
	out.Exporters = strays(r.Judge, inv, match)
	for _, n := range inv.Nodes {
		if n.NewestWord().IsZero() || match != "" && !contains(match, n.ID.Name, n.ID.Cluster) || named != nil && !named.selects(n) {
			continue
		}
		out.reasons[n] = wrong.Node(n.ID.Shown())
		if attention && out.well(n) {
			delete(out.reasons, n)
			continue
		}
		r.Used(n.DataTime())
		out.list = append(out.list, n)
	}
	slices.SortFunc(out.list, func(a, b *inventory.Node) int {
		return cmp.Or(compareReasons(out.reasons[a], out.reasons[b]), cmp.Compare(a.ID.Name, b.ID.Name), cmp.Compare(a.ID.Cluster, b.ID.Cluster))
	})
	return out, nil
}

// well reports whether a node needs no attention. Health that is not known is not ok, but
// nothing to look at where it is reported of no board.
func (n *Nodes) well(of *inventory.Node) bool {
	return n.state(of) == consoleapi.NodeOK && of.Counts().Lost == 0 && !n.wrong.health.Unwell(of.ID) && !slices.ContainsFunc(of.Devices, func(d *inventory.Device) bool {
		return n.wrong.health.State(d.ID).AtLeast(consoleapi.HealthDegraded)
	})
}

// state of a node: one that reports may have something wrong with it.
func (n *Nodes) state(of *inventory.Node) consoleapi.NodeState {
	state := of.State(n.reading.Judge)
	if state == consoleapi.NodeOK && consoleapi.Pressing(n.reasons[of]) {
		return consoleapi.NodeDegraded
	}
	return state
}

// Freshness of the nodes.
func (n *Nodes) Freshness() consoleapi.Freshness { return n.reading.Freshness() }

// Len is how many there are.
func (n *Nodes) Len() int { return len(n.list) }

// Key distinguishes one from all others.
func (n *Nodes) Key(i int) string { return n.list[i].ID.Cluster + "\x00" + n.list[i].ID.Name }

// Page returns some of them with the gauges of their devices.
func (n *Nodes) Page(ctx context.Context, from, to int) ([]consoleapi.Node, error) {
	list := n.list[from:to]
	var devices []*inventory.Device
	for _, one := range list {
		devices = append(devices, one.Devices...)
	}
	shown, err := n.reading.showWithHealth(ctx, n.wrong.health, devices)
	if err != nil {
		return nil, err
	}
	out := make([]consoleapi.Node, 0, len(list))
	for _, one := range list {
		slices.SortFunc(one.Devices, inventory.CompareDevices)
		node := consoleapi.Node{
			Cluster: optional.Text(model.LabelValue(one.ID.Cluster)), Node: one.ID.Name, State: n.state(one), Exporter: one.Exporter,
			Schedulable: one.Schedulable, MIGReconfiguring: one.MIGReconfiguring, Counts: one.Counts(), Reasons: n.reasons[one],
			Devices: make([]consoleapi.Device, 0, len(one.Devices)), Told: n.reading.Reported(one.DataTime()),
		}
		var boards []*inventory.Device
		var healths []consoleapi.Health
		for _, d := range one.Devices {
			device := shown[d]
			device.Reasons = n.wrong.Device(d.ID.Shown())
			node.Devices = append(node.Devices, device)
			if d.Parent == "" {
				boards, healths = append(boards, d), append(healths, *device.Health)
			}
		}
		node.Health = n.wrong.health.Node(one.ID, healths)
		if one.Exporter == consoleapi.ExporterFrozen && one.FrozenSince.Before(one.DataTime()) {
			node.Told = n.reading.Reported(one.FrozenSince)
			node.Stale = true
		}
		node.Values, node.Coverage = over(figures(n.reading.Judge, boards, shown))
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
		p.Pods = optional.Pointer(optional.Zero(p.Pods) + *s.Pods.Pending)
		if *s.Pods.Pending > 0 {
			p.Services = append(p.Services, consoleapi.PendingService{Cluster: s.Cluster, Namespace: s.Namespace, Service: s.Service.Service, Pods: *s.Pods.Pending})
		}
	}
	slices.SortStableFunc(p.Services, func(a, b consoleapi.PendingService) int { return cmp.Compare(b.Pods, a.Pods) })
	p.Services = p.Services[:min(len(p.Services), maxPending)]
	return p
}

// maxStrays is how many exporters without a node are named.
const maxStrays = 100

// strays are the exporters without a known node, with a text in their address or
// cluster.
func strays(j *age.Judge, inv *inventory.Inventory, match string) []consoleapi.Exporter {
	list := []consoleapi.Exporter{}
	for _, e := range inv.Exporters {
		if len(e.Nodes) == 0 && len(list) < maxStrays && (match == "" || contains(match, e.ID.Endpoint(), e.ID.Cluster)) {
			list = append(list, e.Shown(j))
		}
	}
	return list
}
