// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package conditions // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/conditions"

import (
	"cmp"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Place names a device or a node within a cluster.
type Place struct{ Cluster, Name string }

// Service names a service.
type Service struct{ Cluster, Slurm, Namespace, Name string }

// Owner is a pod, or a job on a node, of a service that owns a device. Service is empty where it is
// not known.
type Owner struct{ Slurm, Namespace, Service, Pod string }

// Device is what telemetry shows of a device.
type Device struct {
	ID, Node Place
	Parent   string // hw.id of the physical device of an instance or replica
	Label    string // as people call it: GPU 0, or GPU 0/1 for an instance
	Owners   []Owner
	// Current is whether telemetry or the kubelet names the owners now. Those of a
	// silent device were the last that are known.
	Current  bool
	Free     bool
	LastSeen time.Time
	Lost     bool

	Throttle    []string // reasons that are active
	RowRemap    bool     // remapping a row failed
	Retired     bool     // pages wait for a reboot
	Uncorrected float64  // errors of the last day
	XIDs        []string // codes of the last day
	Gone        []string // what it reported before, and does not any more
	LastXID     *int     // gpu.xid.last

	// HealthKnown is whether telemetry reports its health now; Health are then the
	// reasons against it.
	HealthKnown bool
	Health      []BoardReason
}

// Node is what telemetry shows of a node.
type Node struct {
	ID       Place
	Lost     bool
	LastSeen time.Time
}

// Exporter is one that is not well.
type Exporter struct {
	Node          Place // its name is empty where it is not known
	Address, Port string
	Frozen        bool
	Unrecognized  bool // its fields are not known
	Vanished      bool // it was there, and is not any more
	LastSeen      time.Time
}

// Telemetry is what is known without events.
type Telemetry struct {
	Devices   []Device
	Nodes     []Node
	Exporters []Exporter
}

// Fleet is everything that needs attention, by what it is about.
type Fleet struct {
	entries   []*entry
	same      map[string]*entry
	byDevice  map[Place][]*entry
	byNode    map[Place][]*entry
	byService map[Service][]*entry
	// former are those of the services that were the last to own a silent device.
	former map[Service][]*entry
}

// Find puts together what events and telemetry report.
func Find(log *Log, t *Telemetry) *Fleet {
	f := &Fleet{
		same: map[string]*entry{}, byDevice: map[Place][]*entry{}, byNode: map[Place][]*entry{},
		byService: map[Service][]*entry{}, former: map[Service][]*entry{},
	}
	known := map[Place]*Device{}
	for i := range t.Devices {
		known[t.Devices[i].ID] = &t.Devices[i]
	}
	ofTelemetry(log, t, f.add)
	for _, e := range log.Raised {
		if e.Name != names.EventHealth { // which sums up the others
			f.add(ofEvent(e, false))
		}
	}
	for _, e := range log.Notices {
		one := ofEvent(e, true)
		var last *int
		if d := known[one.device]; d != nil {
			last = d.LastXID
		}
		if Counts(e, log.now, last) {
			f.add(one)
		}
	}
	f.health(log.Raised, t)
	f.index(t, known)
	return f
}

// add adds an entry. An event knows more of what is known already: what it is
// called, and since when it is so.
func (f *Fleet) add(e *entry) {
	before := f.same[e.same]
	if before == nil {
		f.same[e.same] = e
		if e.also != "" {
			f.same[e.also] = e
		}
		f.entries = append(f.entries, e)
		return
	}
	e.node, e.same = before.node, before.same
	if e.Kind == before.Kind {
		e.Label = before.Label // telemetry's is newer
	}
	if consoleapi.CompareReasons(before.Reason, e.Reason) < 0 {
		e.Severity = before.Severity
	}
	*before = *e
}

// index notes whom each entry concerns: a device and its parts, its node, and
// the services that own it or anything on the node.
func (f *Fleet) index(t *Telemetry, known map[Place]*Device) {
	parts, on := map[Place][]*Device{}, map[Place][]*Device{}
	for i := range t.Devices {
		d := &t.Devices[i]
		on[d.Node] = append(on[d.Node], d)
		if d.Parent != "" {
			root := Place{d.ID.Cluster, d.Parent}
			parts[root] = append(parts[root], d)
		}
	}
	for _, e := range f.entries {
		var concerned []*Device
		switch {
		case e.device.Name != "":
			if d := known[e.device]; d != nil {
				e.node = d.Node
				concerned = append([]*Device{d}, parts[e.device]...)
			}
			for _, d := range concerned {
				f.byDevice[d.ID] = append(f.byDevice[d.ID], e)
			}
		case e.node.Name != "":
			concerned = on[e.node]
		case e.service.Name != "":
			f.byService[e.service] = append(f.byService[e.service], e)
		}
		if e.node.Name != "" {
			f.byNode[e.node] = append(f.byNode[e.node], e)
			e.Subject.Node = pointer(e.node.Name)
		}
		f.attribute(e, concerned)
	}
}

// attribute gives an entry to the services that own the devices: where a silent
// device's owner is not known any more, to its last one, and where nothing is
// known of the device, to the one that owned it when it happened.
func (f *Fleet) attribute(e *entry, devices []*Device) {
	current, former := map[Service]Owner{}, map[Service]Owner{}
	free := false
	for _, d := range devices {
		free = free || d.Current && d.Free
		for _, o := range d.Owners {
			if o.Service == "" {
				continue
			}
			of := former
			if d.Current {
				of = current
			}
			of[Service{d.ID.Cluster, o.Slurm, o.Namespace, o.Service}] = o
		}
	}
	s := &e.Subject
	if e.device.Name != "" && len(current)+len(former) == 0 && !free && s.Namespace != nil && s.Service != nil {
		former[Service{e.device.Cluster, value(s.SlurmCluster), *s.Namespace, *s.Service}] = Owner{value(s.SlurmCluster), *s.Namespace, *s.Service, value(s.Pod)}
	}
	for service := range current {
		f.byService[service] = append(f.byService[service], e)
		delete(former, service)
	}
	for service := range former {
		f.former[service] = append(f.former[service], e)
	}
	if e.device.Name == "" {
		return
	}
	s.Namespace, s.Service, s.Pod, s.SlurmCluster = nil, nil, nil, nil
	for _, of := range []map[Service]Owner{current, former} {
		if len(current) > 1 || len(of) != 1 {
			continue // none, or several
		}
		for _, o := range of {
			s.Namespace, s.Service, s.Pod, s.SlurmCluster = pointer(o.Namespace), pointer(o.Service), pointer(o.Pod), pointer(o.Slurm)
		}
		return
	}
}

// Device are the reasons of a device, those of the one that it is a part of among
// them.
func (f *Fleet) Device(id Place) []consoleapi.Reason { return reasons(f.byDevice[id]) }

// Node are the reasons of a node, its exporter and its devices.
func (f *Fleet) Node(id Place) []consoleapi.Reason { return reasons(f.byNode[id]) }

// Service are the reasons of a service: its own, which follow from its figures,
// and those of its devices and their nodes. Of a device that it was the last to
// own only while it misses something: else its pods went elsewhere.
func (f *Fleet) Service(id Service, own []consoleapi.Reason) []consoleapi.Reason {
	entries := f.byService[id]
	if slices.ContainsFunc(own, misses) {
		entries = slices.Concat(entries, f.former[id])
	}
	out := f.known(own)
	taken := f.taken(own)
	for _, e := range entries {
		if !taken[e.same] {
			out = append(out, e.Reason)
		}
	}
	return sorted(out)
}

func misses(r consoleapi.Reason) bool {
	return slices.Contains([]consoleapi.Attention{consoleapi.Stale, consoleapi.NoData, consoleapi.Partial, consoleapi.MissingPods, consoleapi.DegradedPods}, r.Kind)
}

// known gives services' own reasons the events about them.
func (f *Fleet) known(own []consoleapi.Reason) []consoleapi.Reason {
	out := slices.Clone(own)
	for i := range out {
		if e := f.same[sameOwn(out[i])]; e != nil {
			out[i].EventID, out[i].Since = e.EventID, e.Since
		}
	}
	return out
}

func (f *Fleet) taken(own []consoleapi.Reason) map[string]bool {
	out := map[string]bool{}
	for _, r := range own {
		out[sameOwn(r)] = true
	}
	return out
}

func sameOwn(r consoleapi.Reason) string {
	s := r.Subject
	return sameService(r.Kind, Service{value(s.Cluster), value(s.SlurmCluster), value(s.Namespace), value(s.Service)})
}

// All is everything that needs attention, each once: own are the own reasons of
// all services.
func (f *Fleet) All(own, endpoints []consoleapi.Reason) []consoleapi.Reason {
	out, taken := append([]consoleapi.Reason{}, endpoints...), f.taken(own)
	out = append(out, f.known(own)...)
	for _, e := range f.entries {
		if !taken[e.same] {
			out = append(out, e.Reason)
		}
	}
	return sorted(slices.DeleteFunc(out, func(r consoleapi.Reason) bool { return !r.Pressing() }))
}

func reasons(entries []*entry) []consoleapi.Reason {
	out := make([]consoleapi.Reason, 0, len(entries))
	for _, e := range entries {
		out = append(out, e.Reason)
	}
	return sorted(out)
}

// sorted orders reasons; what is alike, by where it is.
func sorted(list []consoleapi.Reason) []consoleapi.Reason {
	slices.SortFunc(list, func(a, b consoleapi.Reason) int {
		return cmp.Or(consoleapi.CompareReasons(a, b), cmp.Compare(value(a.Subject.Node), value(b.Subject.Node)),
			cmp.Compare(a.Text, b.Text), cmp.Compare(value(a.Subject.Device), value(b.Subject.Device)))
	})
	return list
}

// Kinds are the kinds of reasons, each once, in their order.
func Kinds(list []consoleapi.Reason) []consoleapi.Attention {
	out := []consoleapi.Attention{}
	for i := range list {
		if !slices.Contains(out, list[i].Kind) {
			out = append(out, list[i].Kind)
		}
	}
	return out
}
