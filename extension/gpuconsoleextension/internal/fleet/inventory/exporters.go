// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inventory // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"

import (
	"cmp"
	"net"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/age"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// exporterID distinguishes one exporter from all others. Its node's name is known where
// the exporter was discovered on Kubernetes; else the address has to do, and
// several may share all of it but the port.
type exporterID struct{ Cluster, node, Address, Port string }

func exporterOf(m model.Metric) exporterID {
	node := m[queries.Node]
	if node == "" {
		node = m[queries.Host]
	}
	return exporterID{string(m[queries.Cluster]), string(node), string(m[queries.Address]), string(m[queries.Port])}
}

// Endpoint is address and port.
func (id exporterID) Endpoint() string {
	if id.Port == "" {
		return id.Address
	}
	return net.JoinHostPort(id.Address, id.Port)
}

// name is the node's, else the address.
func (id exporterID) name() string { return cmp.Or(id.node, id.Endpoint()) }

// Exporter is one exporter.
type Exporter struct {
	ID     exporterID
	Seen   time.Time
	Known  bool // up or down is known, and current
	up     bool
	frozen bool
	// unrecognized: its fields are not known.
	unrecognized bool
	// released: it reads nothing for now, so that the driver can be changed.
	released bool
	// onKubernetes: it names a node of Kubernetes.
	onKubernetes bool
	Nodes        []*Node   // that it is known to be of
	moved        time.Time // when its values last moved, as far as that is remembered
}

// State is what is known of it now.
func (e *Exporter) State() consoleapi.ExporterState {
	switch {
	case !e.Known:
		return consoleapi.ExporterUnknown
	case !e.up:
		return consoleapi.ExporterDown
	case e.frozen:
		return consoleapi.ExporterFrozen
	case e.unrecognized:
		return consoleapi.ExporterUnrecognized
	default:
		return consoleapi.ExporterUp
	}
}

// Excused reports whether its silence is no fault of its own: the store took nothing, or the
// driver is released.
func (e *Exporter) Excused(j *age.Judge) bool {
	return !e.Known && (e.released || j.Unstored.Excuses(e.Seen))
}

// Shown is the exporter as the API has it.
func (e *Exporter) Shown(j *age.Judge) consoleapi.Exporter {
	return consoleapi.Exporter{
		Cluster: optional.Text(model.LabelValue(e.ID.Cluster)), Node: optional.Text(model.LabelValue(e.Node())), Address: e.ID.Endpoint(), State: e.State(),
		DataTime: e.Seen, DataAge: j.Age(e.Seen),
	}
}

// Worse is the higher the worse a state is.
func Worse(s consoleapi.ExporterState) int {
	return slices.Index([]consoleapi.ExporterState{consoleapi.ExporterUnknown, consoleapi.ExporterUp, consoleapi.ExporterFrozen, consoleapi.ExporterUnrecognized, consoleapi.ExporterDown}, s)
}

// exporters are those that were seen, the worst first. What moved before the horizon is
// not remembered.
func exporters(a *answers, j *age.Judge, horizon time.Time) []*Exporter {
	all := map[exporterID]*Exporter{}
	for _, times := range []*model.Vector{a.exporterTimes, a.exportersRemembered} {
		for _, sample := range *times {
			id := exporterOf(sample.Metric)
			if all[id] == nil {
				all[id] = &Exporter{ID: id, onKubernetes: sample.Metric[queries.Node] != ""}
			}
			if t := ask.Seconds(sample.Value); t.After(all[id].Seen) {
				all[id].Seen = t.Truncate(time.Millisecond)
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
			e.up, e.Known = sample.Value != 0, j.Fresh(e.Seen)
		case queries.Frozen:
			e.frozen = sample.Value != 0
		case queries.Unrecognized:
			e.unrecognized = sample.Value != 0
		case queries.Released:
			e.released = sample.Value != 0
		}
	}
	for _, e := range all {
		e.moved = horizon
	}
	for _, sample := range *a.exportersMoved {
		if e := all[exporterOf(sample.Metric)]; e != nil {
			e.moved = ask.Seconds(sample.Value)
		}
	}
	return inOrder(all)
}

// inOrder leaves out what a node's exporter was before: its pod's address changes
// with every restart.
func inOrder(all map[exporterID]*Exporter) []*Exporter {
	known := map[Place]bool{}
	for id, e := range all {
		if id.node != "" && e.Known {
			known[Place{id.Cluster, id.node}] = true
		}
	}
	var list []*Exporter
	for id, e := range all {
		if e.Known || !known[Place{id.Cluster, id.node}] {
			list = append(list, e)
		}
	}
	rank := func(e *Exporter) int {
		if e.State() == consoleapi.ExporterUnknown {
			return -Worse(consoleapi.ExporterDown) // was there, and is not any more
		}
		return -Worse(e.State())
	}
	slices.SortFunc(list, func(a, b *Exporter) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), CompareNatural(a.ID.name(), b.ID.name()), cmp.Compare(a.ID.Cluster, b.ID.Cluster), CompareNatural(a.ID.Endpoint(), b.ID.Endpoint()))
	})
	return list
}

// has notes an exporter of a node. A node of two is as bad as the worse one.
func (n *Node) has(e *Exporter) {
	if e.Seen.After(n.exporterSeen) {
		n.exporterSeen = e.Seen
	}
	if Worse(e.State()) > Worse(n.Exporter) {
		n.Exporter, n.FrozenSince = e.State(), e.moved
	}
}

// page is when it last had one, as far as that is known now.
func (e *Exporter) page() time.Time {
	if !e.up {
		return time.Time{}
	}
	return e.Seen
}

// Node is the name of its node, if that is known and one.
func (e *Exporter) Node() string {
	if len(e.Nodes) == 1 {
		return e.Nodes[0].ID.Name
	}
	return e.ID.node
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
