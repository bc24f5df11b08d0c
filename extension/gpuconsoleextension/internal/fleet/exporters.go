// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"cmp"
	"net"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// exporterID tells one exporter from all others. Its node's name is known where
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
	heard  time.Time
	known  bool // up or down is known, and current
	up     bool
	frozen bool
	// onKubernetes: it names a node of Kubernetes.
	onKubernetes bool
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
func (e *exporter) excused(r *reading) bool { return !e.known && r.unstored.Excuses(e.heard) }

func (e *exporter) shown(r *reading) consoleapi.Exporter {
	return consoleapi.Exporter{
		Cluster: text(model.LabelValue(e.id.cluster)), Node: text(model.LabelValue(e.id.node)), Address: e.id.endpoint(), State: e.state(),
		DataTime: e.heard, DataAge: max(0, r.now.Sub(e.heard).Seconds()),
	}
}

func worse(s consoleapi.ExporterState) int {
	return slices.Index([]consoleapi.ExporterState{consoleapi.ExporterUnknown, consoleapi.ExporterUp, consoleapi.ExporterFrozen, consoleapi.ExporterDown}, s)
}

// exporters are those that were heard of, the worst first.
func (r *reading) exporters(a *inventoryAnswers) []*exporter {
	all := map[exporterID]*exporter{}
	for _, times := range []*model.Vector{a.exporterTimes, a.exportersRemembered} {
		for _, sample := range *times {
			id := exporterOf(sample.Metric)
			if all[id] == nil {
				all[id] = &exporter{id: id, onKubernetes: sample.Metric[queries.Node] != ""}
			}
			if t := seconds(sample.Value); t.After(all[id].heard) {
				all[id].heard = t.Truncate(time.Millisecond)
			}
		}
	}
	for _, sample := range *a.exporters {
		e := all[exporterOf(sample.Metric)]
		if e == nil {
			continue
		}
		switch sample.Metric[model.MetricNameLabel] {
		case queries.ExporterUp:
			e.up, e.known = sample.Value != 0, r.fresh(e.heard)
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

// putExporters gives nodes their exporters.
func (r *reading) putExporters(inv *inventory, a *inventoryAnswers) {
	inv.exporters = r.exporters(a)
	for _, e := range inv.exporters {
		if e.id.node == "" {
			continue
		}
		n := inv.node(place{e.id.cluster, e.id.node})
		if e.heard.After(n.exporterHeard) {
			n.exporterHeard = e.heard
		}
		// A node of two exporters is as bad as the worse one.
		if worse(e.state()) > worse(n.exporter) {
			n.exporter, n.frozenSince = e.state(), e.moved
		}
	}
	inv.adopt()
	for _, d := range inv.devices {
		if n := inv.node(d.node); n.exporter == consoleapi.ExporterFrozen {
			d.frozenSince = n.frozenSince
		}
	}
}

// adopt tells of the exporters of hosts. Without Kubernetes a scrape knows an
// address, and the page behind it a host: which belongs to which is not known,
// but if all such exporters of a cluster are in one state, so is each host's.
func (inv *inventory) adopt() {
	type common struct {
		state consoleapi.ExporterState
		heard time.Time // the least recent
		moved time.Time // likewise
	}
	of := map[string]common{}
	for _, e := range inv.exporters {
		if e.id.node != "" {
			continue
		}
		c, found := of[e.id.cluster]
		switch {
		case !found:
			c = common{e.state(), e.heard, e.moved}
		case c.state != e.state():
			c.state = consoleapi.ExporterUnknown
		}
		c.heard, c.moved = earlier(c.heard, e.heard), earlier(c.moved, e.moved)
		of[e.id.cluster] = c
	}
	for _, d := range inv.devices {
		n, c := inv.node(d.node), of[d.node.cluster]
		if d.identity[queries.Node] == "" && n.exporter == consoleapi.ExporterUnknown && c.state != "" && c.state != consoleapi.ExporterUnknown {
			n.exporter, n.exporterHeard, n.frozenSince = c.state, c.heard, c.moved
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// maxStrays is how many exporters without a node are named.
const maxStrays = 100

// strays are the exporters that no node is known of, and whose address or cluster
// has a text.
func (r *reading) strays(inv *inventory, match string) []consoleapi.Exporter {
	list := []consoleapi.Exporter{}
	for _, e := range inv.exporters {
		if e.id.node == "" && len(list) < maxStrays && (match == "" || contains(match, e.id.endpoint(), e.id.cluster)) {
			list = append(list, e.shown(r))
		}
	}
	return list
}
