// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"cmp"
	"context"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// exporterID distinguishes one exporter from all others. Its node's name is known where
// the exporter was discovered on Kubernetes; else the address has to do, and
// several may share all of it but the port.
type exporterID struct{ cluster, node, address, port string }

func exporterOf(m model.Metric) exporterID {
	node := m[queries.Node]
	if node == "" {
		node = m[queries.Host]
	}
	return exporterID{string(m[queries.Cluster]), string(node), string(m[queries.Address]), string(m[queries.Port])}
}

// endpoint is address and port.
func (id exporterID) endpoint() string {
	if id.port == "" {
		return id.address
	}
	return net.JoinHostPort(id.address, id.port)
}

// name is the node's, else the address.
func (id exporterID) name() string { return cmp.Or(id.node, id.endpoint()) }

// exporter is one exporter.
type exporter struct {
	id     exporterID
	seen   time.Time
	known  bool // up or down is known, and current
	up     bool
	frozen bool
	// onKubernetes: it names a node of Kubernetes.
	onKubernetes bool
	nodes        []*node   // that it is known to be of
	moved        time.Time // when its values last moved, as far as that is remembered
}

func (e *exporter) state() consoleapi.ExporterState {
	switch {
	case !e.known:
		return consoleapi.ExporterUnknown
	case !e.up:
		return consoleapi.ExporterDown
	case e.frozen:
		return consoleapi.ExporterFrozen
	default:
		return consoleapi.ExporterUp
	}
}

// excused reports whether it need not have fallen silent: the store took nothing.
func (e *exporter) excused(r *reading) bool { return !e.known && r.unstored.Excuses(e.seen) }

func (e *exporter) shown(r *reading) consoleapi.Exporter {
	return consoleapi.Exporter{
		Cluster: text(model.LabelValue(e.id.cluster)), Node: text(model.LabelValue(e.node())), Address: e.id.endpoint(), State: e.state(),
		DataTime: e.seen, DataAge: max(0, r.now.Sub(e.seen).Seconds()),
	}
}

func worse(s consoleapi.ExporterState) int {
	return slices.Index([]consoleapi.ExporterState{consoleapi.ExporterUnknown, consoleapi.ExporterUp, consoleapi.ExporterFrozen, consoleapi.ExporterDown}, s)
}

// exporters are those that were seen, the worst first.
func (r *reading) exporters(a *inventoryAnswers) []*exporter {
	all := map[exporterID]*exporter{}
	for _, times := range []*model.Vector{a.exporterTimes, a.exportersRemembered} {
		for _, sample := range *times {
			id := exporterOf(sample.Metric)
			if all[id] == nil {
				all[id] = &exporter{id: id, onKubernetes: sample.Metric[queries.Node] != ""}
			}
			if t := seconds(sample.Value); t.After(all[id].seen) {
				all[id].seen = t.Truncate(time.Millisecond)
			}
		}
	}
	for _, sample := range *a.exporters {
		e := all[exporterOf(sample.Metric)]
		if e == nil {
			continue
		}
		switch string(sample.Metric[model.MetricNameLabel]) {
		case queries.ExporterUp:
			e.up, e.known = sample.Value != 0, r.fresh(e.seen)
		case queries.Frozen:
			e.frozen = sample.Value != 0
		}
	}
	for _, e := range all {
		e.moved = r.at.Add(-r.options.Remembered)
	}
	for _, sample := range *a.exportersMoved {
		if e := all[exporterOf(sample.Metric)]; e != nil {
			e.moved = seconds(sample.Value)
		}
	}
	return inOrder(all)
}

// inOrder leaves out what a node's exporter was before: its pod's address changes
// with every restart.
func inOrder(all map[exporterID]*exporter) []*exporter {
	known := map[place]bool{}
	for id, e := range all {
		if id.node != "" && e.known {
			known[place{id.cluster, id.node}] = true
		}
	}
	var list []*exporter
	for id, e := range all {
		if e.known || !known[place{id.cluster, id.node}] {
			list = append(list, e)
		}
	}
	rank := func(e *exporter) int {
		if e.state() == consoleapi.ExporterUnknown {
			return -worse(consoleapi.ExporterDown) // was there, and is not any more
		}
		return -worse(e.state())
	}
	slices.SortFunc(list, func(a, b *exporter) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), compareNatural(a.id.name(), b.id.name()), cmp.Compare(a.id.cluster, b.id.cluster), compareNatural(a.id.endpoint(), b.id.endpoint()))
	})
	return list
}

// putExporters gives nodes their exporters. Questions may not be open.
func (r *reading) putExporters(ctx context.Context, inv *inventory, a *inventoryAnswers, s queries.Selector) error {
	inv.exporters = r.exporters(a)
	if err := r.join(ctx, inv, s); err != nil {
		return err
	}
	for _, e := range inv.exporters {
		for _, n := range e.nodes {
			n.has(e)
		}
	}
	inv.adopt()
	for _, d := range inv.devices {
		if n := inv.node(d.node); n.exporter == consoleapi.ExporterFrozen {
			d.frozenSince = n.frozenSince
		}
	}
	return nil
}

// has notes an exporter of a node. A node of two is as bad as the worse one.
func (n *node) has(e *exporter) {
	if e.seen.After(n.exporterSeen) {
		n.exporterSeen = e.seen
	}
	if worse(e.state()) > worse(n.exporter) {
		n.exporter, n.frozenSince = e.state(), e.moved
	}
}

// maxScrapes is how many scrapes of silent nodes are looked up.
const maxScrapes = 16

// join finds the nodes of exporters. A scrape knows an address, and the page behind
// it a host: but all points of one scrape have one time, so the device with a sample
// of the time of an exporter's was on its page. A silent one is looked up at the
// time of its last sample.
func (r *reading) join(ctx context.Context, inv *inventory, s queries.Selector) error {
	strays := map[string][]*exporter{} // by cluster
	for _, e := range inv.exporters {
		switch n := inv.nodes[place{e.id.cluster, e.id.address}]; {
		case e.id.node != "":
			e.nodes = []*node{inv.node(place{e.id.cluster, e.id.node})}
		case n != nil && !n.seen.IsZero():
			e.nodes = []*node{n} // its address is the host's name
		default:
			strays[e.id.cluster] = append(strays[e.id.cluster], e)
		}
	}
	if len(strays) == 0 {
		return nil
	}
	may := map[*node][]*exporter{}
	silent := map[time.Time][]*node{}
	note := func(n *node, t time.Time, at func(*exporter) time.Time) bool {
		found := false
		for _, e := range strays[n.id.cluster] {
			if at(e).Equal(t) {
				found = true
				if !slices.Contains(may[n], e) {
					may[n] = append(may[n], e)
				}
			}
		}
		return found
	}
	for _, d := range inv.devices {
		n := inv.node(d.node)
		if d.seen.IsZero() || d.identity[queries.Node] != "" || strays[n.id.cluster] == nil {
			continue
		}
		if !note(n, d.seen, (*exporter).page) && !slices.Contains(silent[d.seen], n) {
			silent[d.seen] = append(silent[d.seen], n)
		}
	}
	if err := r.lookUp(ctx, s, silent, may, note); err != nil {
		return err
	}
	inv.decide(may, strays)
	return nil
}

// lookUp asks which exporters were scraped when silent devices were last seen.
func (r *reading) lookUp(ctx context.Context, s queries.Selector, silent map[time.Time][]*node, may map[*node][]*exporter, note func(*node, time.Time, func(*exporter) time.Time) bool) error {
	maps.DeleteFunc(silent, func(_ time.Time, nodes []*node) bool {
		return !slices.ContainsFunc(nodes, func(n *node) bool { return len(may[n]) == 0 })
	})
	times := slices.SortedFunc(maps.Keys(silent), func(a, b time.Time) int { return b.Compare(a) })
	times = times[:min(len(times), maxScrapes)]
	found := make([]*model.Vector, len(times))
	r.more(ctx)
	for i, t := range times {
		found[i] = r.vectorAt(queries.ExporterTimes(s), t)
	}
	if err := r.wait(); err != nil {
		return err
	}
	for i, t := range times {
		then := map[exporterID]time.Time{}
		for _, sample := range *found[i] {
			then[exporterOf(sample.Metric)] = seconds(sample.Value)
		}
		for _, n := range silent[t] {
			note(n, t, func(e *exporter) time.Time { return then[e.id] })
		}
	}
	return nil
}

// decide joins exporters to the nodes that they may be of, where that is one. What
// is known of one is not of another, and one exporter of one node is its own.
func (inv *inventory) decide(may map[*node][]*exporter, strays map[string][]*exporter) {
	for range 2 {
		for n, all := range may {
			if len(all) > 1 {
				may[n] = slices.DeleteFunc(all, func(e *exporter) bool { return len(e.nodes) > 0 && !slices.Contains(e.nodes, n) })
			}
			if one := may[n]; len(one) == 1 && !slices.Contains(one[0].nodes, n) {
				one[0].nodes = append(one[0].nodes, n)
			}
		}
	}
	hosts := map[string][]*node{}
	for _, d := range inv.devices {
		if n := inv.node(d.node); d.identity[queries.Node] == "" && !d.seen.IsZero() && !slices.Contains(hosts[n.id.cluster], n) {
			hosts[n.id.cluster] = append(hosts[n.id.cluster], n)
		}
	}
	for cluster, all := range strays {
		if len(all) == 1 && len(hosts[cluster]) == 1 {
			all[0].nodes = hosts[cluster]
		}
	}
}

// adopt reports the exporters of hosts that none could be joined to: if all of
// them that are left in a cluster are in one state, so is each host's.
func (inv *inventory) adopt() {
	type common struct {
		state consoleapi.ExporterState
		seen  time.Time // the least recent
		moved time.Time // likewise
		down  bool      // one is
	}
	of := map[string]common{}
	for _, e := range inv.exporters {
		if len(e.nodes) > 0 {
			continue
		}
		c, found := of[e.id.cluster]
		switch {
		case !found:
			c = common{state: e.state(), seen: e.seen, moved: e.moved}
		case c.state != e.state():
			c.state = consoleapi.ExporterUnknown
		}
		c.seen, c.moved = earlier(c.seen, e.seen), earlier(c.moved, e.moved)
		c.down = c.down || e.state() == consoleapi.ExporterDown
		of[e.id.cluster] = c
	}
	for _, d := range inv.devices {
		n, c := inv.node(d.node), of[d.node.cluster]
		if d.identity[queries.Node] != "" || n.exporter != consoleapi.ExporterUnknown {
			continue
		}
		n.suspect = c.down
		if c.down {
			n.exporterSeen = c.seen
		}
		if c.state != "" && c.state != consoleapi.ExporterUnknown {
			n.exporter, n.exporterSeen, n.frozenSince = c.state, c.seen, c.moved
		}
	}
}

// page is when it last had one, as far as that is known now.
func (e *exporter) page() time.Time {
	if !e.up {
		return time.Time{}
	}
	return e.seen
}

// node is the name of its node, if that is known and one.
func (e *exporter) node() string {
	if len(e.nodes) == 1 {
		return e.nodes[0].id.name
	}
	return e.id.node
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// maxStrays is how many exporters without a node are named.
const maxStrays = 100

// strays are the exporters without a known node, with a text in their address or
// cluster.
func (r *reading) strays(inv *inventory, match string) []consoleapi.Exporter {
	list := []consoleapi.Exporter{}
	for _, e := range inv.exporters {
		if len(e.nodes) == 0 && len(list) < maxStrays && (match == "" || contains(match, e.id.endpoint(), e.id.cluster)) {
			list = append(list, e.shown(r))
		}
	}
	return list
}
