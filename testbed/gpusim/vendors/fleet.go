// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package vendors simulates nodes with boards that are not NVIDIA's: the pages of AMD's
// Device Metrics Exporter, of Intel's Gaudi exporter and of XPU Manager 1.x and 2.x, the
// ids of the vendors' device plugins, the part of sysfs that joins them, and what is true
// behind all of it. It imports no product code.
package vendors

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Fleet is nodes that go on with the time.
type Fleet struct {
	now   func() time.Time
	start time.Time

	mu    sync.Mutex // guards what follows
	hosts []*host
	made  int // faults so far
}

// host is one node.
type host struct {
	Node
	seed   uint64
	boards []*board
	faults []*fault
	pods   []held
}

// held is a pod with its places.
type held struct {
	Pod
	places []place
}

type fault struct {
	Fault
	id       string
	from, to time.Time // to is zero while it lasts
}

// New makes a fleet that starts now.
func New(cfg Config, now func() time.Time) (*Fleet, error) {
	f := &Fleet{now: now, start: now()}
	names := map[string]bool{}
	for i, n := range cfg.Nodes {
		if err := n.complete(); err != nil {
			return nil, fmt.Errorf("nodes[%d]: %w", i, err)
		}
		if names[n.Name] {
			return nil, fmt.Errorf("nodes[%d]: name %q is there already", i, n.Name)
		}
		names[n.Name] = true
		h := newHost(n, cfg.Seed)
		if err := h.setPods(n.Pods); err != nil {
			return nil, fmt.Errorf("nodes[%d]: %w", i, err)
		}
		f.hosts = append(f.hosts, h)
	}
	for i, one := range cfg.Faults {
		if _, err := f.add(one, f.start); err != nil {
			return nil, fmt.Errorf("faults[%d]: %w", i, err)
		}
	}
	return f, nil
}

// Start is the time of the fleet's start.
func (f *Fleet) Start() time.Time { return f.start }

// Now is the fleet's time.
func (f *Fleet) Now() time.Time { return f.now() }

// Nodes lists the names of the nodes.
func (f *Fleet) Nodes() []string {
	names := make([]string, 0, len(f.hosts))
	for _, h := range f.hosts {
		names = append(names, h.Name)
	}
	return names
}

// Vendor is the vendor of a node's boards, "" for an unknown node.
func (f *Fleet) Vendor(node string) string {
	if h := f.host(node); h != nil {
		return h.model.Vendor
	}
	return ""
}

func (f *Fleet) host(name string) *host {
	for _, h := range f.hosts {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// SetPods replaces the pods of a node.
func (f *Fleet) SetPods(node string, pods []Pod) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.host(node)
	if h == nil {
		return fmt.Errorf("no node %q", node)
	}
	return h.setPods(pods)
}

func (h *host) setPods(pods []Pod) error {
	var all []held
	taken := map[place]string{}
	for _, p := range pods {
		one := held{Pod: p}
		for _, d := range p.Devices {
			at, err := parsePlace(d)
			if err != nil {
				return err
			}
			if at.board >= h.Boards {
				return fmt.Errorf("pod %s: device %q: the node has %d boards", p.Name, d, h.Boards)
			}
			if other := taken[at]; other != "" {
				return fmt.Errorf("pod %s: device %q belongs to %s", p.Name, d, other)
			}
			taken[at] = p.Name
			one.places = append(one.places, at)
		}
		all = append(all, one)
	}
	h.pods = all
	return nil
}

// ErrNoFault is returned for an unknown id.
var ErrNoFault = errors.New("no such fault")

// StartFault starts a fault now, or after its time from now, and returns its id.
func (f *Fleet) StartFault(one Fault) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.add(one, f.now())
}

func (f *Fleet) add(one Fault, at time.Time) (string, error) {
	h := f.host(one.Node)
	switch {
	case h == nil:
		return "", fmt.Errorf("no node %q", one.Node)
	case !slices.Contains(kinds, one.Kind):
		return "", fmt.Errorf("unknown kind %q: use one of %v", one.Kind, kinds)
	case one.Board != nil && (*one.Board < 0 || *one.Board >= h.Boards):
		return "", fmt.Errorf("board %d: the node has %d", *one.Board, h.Boards)
	}
	if one.Kind == ModeChange {
		if err := h.mode(one.Compute, one.Memory); err != nil {
			return "", err
		}
	}
	f.made++
	x := &fault{Fault: one, id: "f" + strconv.Itoa(f.made), from: at.Add(time.Duration(one.After))}
	if one.For > 0 {
		x.to = x.from.Add(time.Duration(one.For))
	}
	h.faults = append(h.faults, x)
	return x.id, nil
}

// EndFault ends a fault now.
func (f *Fleet) EndFault(id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.hosts {
		for _, x := range h.faults {
			if x.id == id {
				if now := f.now(); x.to.IsZero() || x.to.After(now) {
					x.to = now
				}
				return nil
			}
		}
	}
	return fmt.Errorf("%w: %q", ErrNoFault, id)
}

// stays are kinds of which the mark outlasts them.
func (k Kind) stays() bool { return k == RAS || k == ECC || k == DeviceReset }

// on is the newest fault of a kind that a board has at a time; board -1 is the node.
func (h *host) on(kind Kind, board int, at time.Time) *fault {
	for _, x := range slices.Backward(h.faults) {
		if x.Kind == kind && !at.Before(x.from) && (x.to.IsZero() || at.Before(x.to) || kind.stays()) &&
			(x.Board == nil || board < 0 || *x.Board == board) {
			return x
		}
	}
	return nil
}

// Active lists the kinds of faults that a node has at a time.
func (f *Fleet) Active(node string, at time.Time) (active []Kind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.host(node)
	if h == nil {
		return nil
	}
	for _, k := range kinds {
		if h.on(k, -1, at) != nil {
			active = append(active, k)
		}
	}
	return active
}
