// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package state has the form in which gpu_events stores its state.
package state

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/board"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/devicerules"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
)

// Version is that of the form below. Version 1 had raised services alone, in the same
// form.
const Version = 2

// MaxMembers is how many devices, and how many services, of one node are kept.
const MaxMembers = 4096

// maxReported is the longest text of what an event about health reported, in bytes: with
// the names of all reasons it is shorter.
const maxReported = 1024

// maxRises are the counts of one device of which it matters that they rise.
const maxRises = 64

// State is every condition that was reported as raised, and what a restart must not
// forget.
type State struct {
	Version int      `json:"version"`
	Raised  []Raised `json:"raised"`
	Devices []Device `json:"devices,omitempty"`
	Nodes   []Node   `json:"nodes,omitempty"`
}

// Raised is a condition and its subject: a service, a device, an exporter or a
// node.
type Raised struct {
	Event     string `json:"event"`
	Cluster   string `json:"cluster,omitempty"`
	Slurm     string `json:"slurm,omitempty"` // cluster of a service on Slurm
	Namespace string `json:"namespace,omitempty"`
	Service   string `json:"service,omitempty"`
	Device    string `json:"device,omitempty"`
	Node      string `json:"node,omitempty"`
	Exporter  string `json:"exporter,omitempty"`
	Part      string `json:"part,omitempty"`
	Level     uint8  `json:"level,omitempty"`  // 1 where it is absent
	Reason    string `json:"reason,omitempty"` // of an exporter that is down; unknown where it is absent
}

// Device is a device and its counters.
type Device struct {
	Cluster  string   `json:"cluster,omitempty"`
	ID       string   `json:"id"`
	Node     string   `json:"node,omitempty"`
	Host     string   `json:"host,omitempty"`
	Parent   string   `json:"parent,omitempty"`
	Model    string   `json:"model,omitempty"`
	PCI      string   `json:"pci,omitempty"`
	Index    *int64   `json:"index,omitempty"`
	Exporter string   `json:"exporter,omitempty"`
	LastXID  *int64   `json:"last_xid,omitempty"`
	XIDs     []XID    `json:"xids,omitempty"`
	ECC      *float64 `json:"ecc,omitempty"`
	Resets   *float64 `json:"resets,omitempty"`
	// Rises are counts by their metric and attribute.
	Rises    map[string]float64 `json:"rises,omitempty"`
	RAS      []RAS              `json:"ras,omitempty"`   // the last codes
	Ports    []string           `json:"ports,omitempty"` // that had a link
	Valued   bool               `json:"valued,omitempty"`
	LogSince uint64             `json:"log_since,omitempty"` // from when on lines of the kernel log are read
	Driver   string             `json:"driver,omitempty"`
	Boot     string             `json:"boot,omitempty"`    // the id of the node's boot
	BootAt   uint64             `json:"boot_at,omitempty"` // when it was read last, in nanoseconds since 1970
	Health   *board.Saved       `json:"health,omitempty"`
	Reported string             `json:"reported,omitempty"` // what the last event about its health reported
}

// RAS is an error code of AMD boards with its severity.
type RAS struct {
	Code     int    `json:"code"`
	Severity string `json:"severity"`
}

// XID is the count of one code.
type XID struct {
	Code    int64   `json:"code"`
	Count   float64 `json:"count"`
	Derived bool    `json:"derived,omitempty"`
	Start   uint64  `json:"start,omitempty"` // nanoseconds since 1970
	Log     *Log    `json:"log,omitempty"`
}

// Log is what lines of the kernel log have of one code.
type Log struct {
	At        uint64 `json:"at"`                  // of the newest one, in nanoseconds since 1970
	Lines     int64  `json:"lines,omitempty"`     // that no page has reported
	Pending   int64  `json:"pending,omitempty"`   // that no event has
	Uncounted bool   `json:"uncounted,omitempty"` // no page has a count
}

// Node is a node with its devices and services.
type Node struct {
	Cluster  string    `json:"cluster,omitempty"`
	Node     string    `json:"node"`
	Cordoned bool      `json:"cordoned,omitempty"`
	Devices  []string  `json:"devices,omitempty"`
	Services []Service `json:"services,omitempty"`
}

// Service is a service of the node's cluster.
type Service struct {
	Slurm     string `json:"slurm,omitempty"` // cluster of Slurm
	Namespace string `json:"namespace,omitempty"`
	Service   string `json:"service"`
}

// New returns a state without anything in it.
func New() *State { return &State{Version: Version, Raised: []Raised{}} }

// Raise adds a condition where its level is above 0.
func (s *State) Raise(level uint8, r Raised) {
	if level == 0 {
		return
	}
	if level > 1 {
		r.Level = level
	}
	s.Raised = append(s.Raised, r)
}

// Sort gives everything an order of its own, so that the same state is the same text.
func (s *State) Sort() {
	slices.SortFunc(s.Raised, func(a, b Raised) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Slurm, b.Slurm), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Service, b.Service), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Node, b.Node),
			cmp.Compare(a.Exporter, b.Exporter), cmp.Compare(a.Part, b.Part))
	})
	slices.SortFunc(s.Devices, func(a, b Device) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(s.Nodes, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Node, b.Node))
	})
	for i := range s.Nodes {
		slices.Sort(s.Nodes[i].Devices)
		slices.SortFunc(s.Nodes[i].Services, func(a, b Service) int {
			return cmp.Or(cmp.Compare(a.Slurm, b.Slurm), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Service, b.Service))
		})
	}
}

// Encode returns s as JSON, and how many devices it had to leave out: JSON has no text
// for some numbers, and one such device must not cost all others their state.
func Encode(s *State) (text []byte, dropped int, err error) {
	if text, err = json.Marshal(s); err == nil {
		return text, 0, nil
	}
	left := *s
	left.Devices = slices.DeleteFunc(slices.Clone(s.Devices), func(d Device) bool {
		_, err := json.Marshal(&d)
		return err != nil
	})
	text, err = json.Marshal(&left)
	return text, len(s.Devices) - len(left.Devices), err
}

// Decode reads what Encode returned; an empty text is a new state. Of more than limit
// conditions, devices or nodes each, the first are taken; refused is the number of the
// others.
func Decode(text []byte, limit int) (s *State, refused int, err error) {
	s = &State{Version: Version}
	if len(text) == 0 {
		return s, 0, nil
	}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, 0, err
	}
	if s.Version != 1 && s.Version != Version {
		return nil, 0, fmt.Errorf("version %d is not known, only 1 and %d are", s.Version, Version)
	}
	s.Version = Version
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

// check bounds every text, and refuses an entry without a subject.
func (s *State) check() error {
	bound := func(texts ...*string) {
		for _, t := range texts {
			*t = event.Bounded(*t)
		}
	}
	for i := range s.Raised {
		r := &s.Raised[i]
		bound(&r.Event, &r.Cluster, &r.Slurm, &r.Namespace, &r.Service, &r.Device, &r.Node, &r.Exporter, &r.Part)
		if r.Service == "" && r.Device == "" && r.Node == "" && r.Exporter == "" {
			return errors.New("a condition has no subject")
		}
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		bound(&d.Cluster, &d.ID, &d.Node, &d.Host, &d.Parent, &d.Model, &d.PCI, &d.Exporter, &d.Driver, &d.Boot)
		if len(d.Reported) > maxReported {
			return errors.New("a device has a report that is too long")
		}
		if d.ID == "" || len(d.XIDs) > devicerules.MaxXIDCodes || len(d.Rises) > maxRises ||
			len(d.RAS) > 3*devicerules.MaxRASCodes || len(d.Ports) > devicerules.MaxPorts {
			return errors.New("a device has no id, or too many XIDs, counts, codes or ports")
		}
		for j := range d.RAS {
			bound(&d.RAS[j].Severity)
		}
		for j := range d.Ports {
			bound(&d.Ports[j])
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		bound(&n.Cluster, &n.Node)
		if n.Node == "" || len(n.Devices) > MaxMembers || len(n.Services) > MaxMembers {
			return errors.New("a node has no name, or too many devices or services")
		}
		for j := range n.Devices {
			bound(&n.Devices[j])
		}
		for j := range n.Services {
			bound(&n.Services[j].Slurm, &n.Services[j].Namespace, &n.Services[j].Service)
		}
	}
	return nil
}
