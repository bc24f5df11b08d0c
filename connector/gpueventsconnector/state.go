// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// stateVersion is of the form below. Version 1 had raised services alone, in the
// same form.
const stateVersion = 2

// savedState is what is stored: every condition whose raising was told, and what
// a restart must not forget.
type savedState struct {
	Version int           `json:"version"`
	Raised  []savedEvent  `json:"raised"`
	Devices []savedDevice `json:"devices,omitempty"`
	Nodes   []savedNode   `json:"nodes,omitempty"`
}

// savedEvent is a condition and its subject: a service, a device, an exporter or
// a node.
type savedEvent struct {
	Event     string `json:"event"`
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Service   string `json:"service,omitempty"`
	Device    string `json:"device,omitempty"`
	Node      string `json:"node,omitempty"`
	Exporter  string `json:"exporter,omitempty"`
	Part      string `json:"part,omitempty"`
	Level     uint8  `json:"level,omitempty"`  // 1 where it is absent
	Reason    string `json:"reason,omitempty"` // of an exporter that is down; unknown where it is absent
}

type savedDevice struct {
	Cluster  string     `json:"cluster,omitempty"`
	ID       string     `json:"id"`
	Node     string     `json:"node,omitempty"`
	Host     string     `json:"host,omitempty"`
	Parent   string     `json:"parent,omitempty"`
	Model    string     `json:"model,omitempty"`
	PCI      string     `json:"pci,omitempty"`
	Index    *int64     `json:"index,omitempty"`
	Exporter string     `json:"exporter,omitempty"`
	LastXID  *int64     `json:"last_xid,omitempty"`
	XIDs     []savedXID `json:"xids,omitempty"`
	ECC      *float64   `json:"ecc,omitempty"`
	Valued   bool       `json:"valued,omitempty"`
}

type savedXID struct {
	Code    int64   `json:"code"`
	Count   float64 `json:"count"`
	Derived bool    `json:"derived,omitempty"`
	Start   uint64  `json:"start,omitempty"`
}

type savedNode struct {
	Cluster  string         `json:"cluster,omitempty"`
	Node     string         `json:"node"`
	Cordoned bool           `json:"cordoned,omitempty"`
	Devices  []string       `json:"devices,omitempty"`
	Services []savedService `json:"services,omitempty"`
}

type savedService struct {
	Namespace string `json:"namespace,omitempty"`
	Service   string `json:"service"`
}

// save is the state as of now, in an order of its own, so that the same state is
// the same text. All events must have been handed on.
func (e *engine) save() *savedState {
	s := &savedState{Version: stateVersion, Raised: []savedEvent{}}
	for _, t := range e.services {
		for i := range t.conds {
			s.add(t.conds[i].level, savedEvent{
				Event: serviceRules[i].event, Cluster: t.service.cluster, Namespace: t.service.namespace, Service: t.service.name,
			})
		}
	}
	for _, d := range e.devices {
		s.Devices = append(s.Devices, d.save())
		for i := range d.conds {
			r := &e.deviceRules[i]
			s.add(d.conds[i].level, savedEvent{Event: r.event, Cluster: d.id.cluster, Device: d.id.id, Part: r.part})
		}
		s.add(d.lost.level, savedEvent{Event: lostRule.event, Cluster: d.id.cluster, Device: d.id.id})
	}
	for _, x := range e.exporters {
		reason := names.ExporterReasonDown
		if x.frozen {
			reason = names.ExporterReasonFrozen
		}
		s.add(x.down.level, savedEvent{Event: names.EventExporterDown, Cluster: x.id.cluster, Node: x.id.node, Exporter: x.id.name(), Reason: reason})
	}
	for _, n := range e.nodes {
		s.Nodes = append(s.Nodes, n.save())
		s.add(n.lost.level, savedEvent{Event: nodeLostRule.event, Cluster: n.place.cluster, Node: n.place.node})
	}
	slices.SortFunc(s.Raised, func(a, b savedEvent) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Service, b.Service), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Node, b.Node),
			cmp.Compare(a.Exporter, b.Exporter), cmp.Compare(a.Part, b.Part))
	})
	slices.SortFunc(s.Devices, func(a, b savedDevice) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(s.Nodes, func(a, b savedNode) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Node, b.Node))
	})
	return s
}

func (s *savedState) add(level uint8, e savedEvent) {
	if level == 0 {
		return
	}
	if level > 1 {
		e.Level = level
	}
	s.Raised = append(s.Raised, e)
}

func (d *device) save() savedDevice {
	f := &d.facts
	s := savedDevice{
		Cluster: d.id.cluster, ID: d.id.id, Node: f.node, Host: f.host, Parent: f.parent, Model: f.model, PCI: f.pci,
		Valued: d.valued,
	}
	if d.exporter != (exporterID{}) {
		s.Exporter = d.exporter.name()
	}
	if f.index >= 0 {
		s.Index = &f.index
	}
	if d.xid.last >= 0 {
		s.LastXID = &d.xid.last
	}
	for _, c := range d.xid.codes {
		if value, start, derived, known := c.count.Known(); known { // what is still to be reported has not happened yet
			s.XIDs = append(s.XIDs, savedXID{c.code, max(0, value-float64(c.notice.untold)), derived, uint64(start)})
		}
	}
	if d.ecc.known {
		v := max(0, d.ecc.value-float64(d.eccTold.untold))
		s.ECC = &v
	}
	return s
}

func (n *node) save() savedNode {
	s := savedNode{Cluster: n.place.cluster, Node: n.place.node, Cordoned: n.cordoned}
	for id := range n.devices {
		s.Devices = append(s.Devices, id)
	}
	slices.Sort(s.Devices)
	for v := range n.services {
		s.Services = append(s.Services, savedService{v.namespace, v.name})
	}
	slices.SortFunc(s.Services, func(a, b savedService) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Service, b.Service))
	})
	return s
}

// encodeState writes s, and reports how many devices it had to leave out: JSON has no
// text for some numbers, and one device must not cost all others their state.
func encodeState(s *savedState) (text []byte, dropped int, err error) {
	if text, err = json.Marshal(s); err == nil {
		return text, 0, nil
	}
	left := *s
	left.Devices = slices.DeleteFunc(slices.Clone(s.Devices), func(d savedDevice) bool {
		_, err := json.Marshal(&d)
		return err != nil
	})
	text, err = json.Marshal(&left)
	return text, len(s.Devices) - len(left.Devices), err
}

// decodeState reads what encodeState wrote; nothing at all is no state. Of more
// than limit conditions, devices or nodes the first are taken, and the number of
// the others is returned.
func decodeState(text []byte, limit int) (s *savedState, refused int, err error) {
	s = &savedState{Version: stateVersion}
	if len(text) == 0 {
		return s, 0, nil
	}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, 0, err
	}
	if s.Version != 1 && s.Version != stateVersion {
		return nil, 0, fmt.Errorf("version %d is not known, only 1 and %d are", s.Version, stateVersion)
	}
	s.Version = stateVersion
	if n := len(s.Raised) - limit; n > 0 {
		s.Raised, refused = s.Raised[:limit], refused+n
	}
	if n := len(s.Devices) - limit; n > 0 {
		s.Devices, refused = s.Devices[:limit], refused+n
	}
	if n := len(s.Nodes) - limit; n > 0 {
		s.Nodes, refused = s.Nodes[:limit], refused+n
	}
	return s, refused, s.check()
}

// check bounds every text, and refuses what names no subject.
func (s *savedState) check() error {
	bound := func(texts ...*string) {
		for _, t := range texts {
			*t = bounded(*t)
		}
	}
	for i := range s.Raised {
		r := &s.Raised[i]
		bound(&r.Event, &r.Cluster, &r.Namespace, &r.Service, &r.Device, &r.Node, &r.Exporter, &r.Part)
		if r.Service == "" && r.Device == "" && r.Node == "" && r.Exporter == "" {
			return errors.New("a condition is about nothing")
		}
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		bound(&d.Cluster, &d.ID, &d.Node, &d.Host, &d.Parent, &d.Model, &d.PCI, &d.Exporter)
		if d.ID == "" || len(d.XIDs) > maxXIDCodes {
			return errors.New("a device has no id, or too many XIDs")
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		bound(&n.Cluster, &n.Node)
		if n.Node == "" || len(n.Devices) > maxMembers || len(n.Services) > maxMembers {
			return errors.New("a node has no name, or too much on it")
		}
		for j := range n.Devices {
			bound(&n.Devices[j])
		}
		for j := range n.Services {
			bound(&n.Services[j].Namespace, &n.Services[j].Service)
		}
	}
	return nil
}
