// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// Fleet is a simulated fleet. Its methods may be called at the same time.
type Fleet struct {
	cfg   Config
	clock func() time.Time
	start time.Time
	nodes []*node

	mu     sync.Mutex // guards faults and the boards' states; never held over I/O
	faults []*fault
}

type node struct {
	fleet   *Fleet
	cfg     Node
	exp     *exporter
	boards  []*board
	pods    []heldPod
	faults  []*fault
	since   int64 // second of the last change at run time: what was before is forgotten
	formers map[slotRef]former
}

// New builds a fleet that starts at clock(). It returns an error that names
// the key when the configuration makes no sense.
func New(cfg Config, clock func() time.Time) (*Fleet, error) {
	if len(cfg.Nodes) == 0 {
		return nil, errors.New("nodes: at least one is needed")
	}
	fl := &Fleet{cfg: cfg, clock: clock, start: clock()}
	for i, nc := range cfg.Nodes {
		if nc.Name == "" {
			return nil, fmt.Errorf("nodes[%d].name: must not be empty", i)
		}
		if fl.node(nc.Name) != nil {
			return nil, fmt.Errorf("nodes[%d].name: %q is a duplicate", i, nc.Name)
		}
		n, err := newNode(fl, nc)
		if err != nil {
			return nil, fmt.Errorf("nodes[%d] (%s): %w", i, nc.Name, err)
		}
		fl.nodes = append(fl.nodes, n)
	}
	for i, spec := range cfg.Faults {
		if _, err := fl.add(spec, 0); err != nil {
			return nil, fmt.Errorf("faults[%d]: %w", i, err)
		}
	}
	return fl, nil
}

func newNode(fl *Fleet, nc Node) (*node, error) {
	n := &node{fleet: fl, cfg: nc}
	var err error
	if n.exp, err = findExporter(nc.Version); err != nil {
		return nil, fmt.Errorf("version: %w", err)
	}
	names := nc.Models
	if len(names) == 0 {
		for range min(nc.Devices, 9) {
			names = append(names, nc.Model)
		}
	}
	if len(names) < 1 || len(names) > 8 {
		count := nc.Devices
		if len(nc.Models) > 0 {
			count = len(nc.Models)
		}
		return nil, fmt.Errorf("devices: %d is not between 1 and 8", count)
	}
	if f := nc.Fields; f != "" && f != "default" && f != "all" {
		return nil, fmt.Errorf("fields: %q is neither default nor all", f)
	}
	for key := range nc.MIG {
		if i, err := strconv.Atoi(key); err != nil || i < 0 || i >= len(names) {
			return nil, fmt.Errorf("mig: %q is not the index of a device", key)
		}
	}
	for i, name := range names {
		m, err := findModel(name)
		if err != nil {
			return nil, fmt.Errorf("model: %w", err)
		}
		b, err := newBoard(n, i, m, nc.MIG[strconv.Itoa(i)], fl.cfg.Seed)
		if err != nil {
			return nil, fmt.Errorf("mig[%d]: %w", i, err)
		}
		n.boards = append(n.boards, b)
	}
	if nc.VirtualGPUs && !n.exp.podLabels {
		return nil, fmt.Errorf("virtual_gpus: an exporter of version %s cannot, use 4.5 or later", nc.Version)
	}
	if nc.StaleLabels < 0 {
		return nil, errors.New("stale_labels: cannot be negative")
	}
	n.pods, err = n.resolve(nc.Pods)
	return n, err
}

func (fl *Fleet) node(name string) *node {
	for _, n := range fl.nodes {
		if n.cfg.Name == name {
			return n
		}
	}
	return nil
}

// Nodes lists the names of the nodes, in the order of the configuration.
func (fl *Fleet) Nodes() []string {
	out := make([]string, 0, len(fl.nodes))
	for _, n := range fl.nodes {
		out = append(out, n.cfg.Name)
	}
	return out
}

// Start is when the fleet's time began.
func (fl *Fleet) Start() time.Time { return fl.start }

// at is a time since the start as a node knows it: not before its last change.
func (n *node) at(t time.Duration) time.Duration {
	return max(t, time.Duration(n.since)*time.Second)
}

// elapsed is the fleet's time: never negative.
func (fl *Fleet) elapsed(t time.Time) time.Duration { return max(t.Sub(fl.start), 0) }

// gone reports whether a fault has taken the pod away at second k.
func (n *node) gone(p *Pod, k int64) bool {
	for _, f := range n.faults {
		if f.Kind == PodGone && f.holdsStep(k) && f.Pod.Name == p.Name && f.Pod.Namespace == p.Namespace {
			return true
		}
	}
	return false
}

// throttled reports whether a board is too hot at second k.
func (n *node) throttled(device int, k int64) bool {
	for _, f := range n.faults {
		if f.Kind == ThermalThrottle && f.holdsStep(k) && f.covers(device, f.target.position) {
			return true
		}
	}
	return false
}

// rewind lets the boards add up again from the beginning when something changed
// at a second that they have added up already.
func (n *node) rewind(k int64) {
	for _, b := range n.boards {
		if b.state.step > k {
			b.state.primed = false
		}
	}
}

// read gives the rows of a node's page at second k.
func (n *node) read(k int64) []reading {
	var rows []reading
	for _, b := range n.boards {
		for _, r := range b.read(k) {
			if n.mark(&r, k) {
				rows = append(rows, n.rows(r, k)...)
			}
		}
	}
	return rows
}

// mark applies the faults that change a row's values; false is a lost row.
func (n *node) mark(r *reading, k int64) bool {
	lastXID, lost := time.Duration(-1), false
	for _, f := range n.faults {
		switch f.Kind {
		case GPULost:
			lost = lost || f.holdsStep(k) && f.covers(r.board.index, r.position)
		case Sentinel:
			if f.holdsStep(k) && f.covers(r.board.index, r.position) {
				r.blank = append(r.blank, f)
			}
		case MIGReprofile:
			if f.holdsStep(k) && f.target == (slotRef{r.board.index, r.position}) {
				is := f.reprofiled
				is.id = r.mig.id
				r.free += is.memoryMiB - r.total
				r.mig, r.total = &is, is.memoryMiB
			}
		case RowRemapPending:
			if f.holdsStep(k) && f.covers(r.board.index, f.target.position) {
				r.remapPending = 1
			}
		case XID:
			if k < step(Duration(f.start)) || !f.hits(r.board, r.position) {
				continue
			}
			if f.holdsStep(k) && f.start >= lastXID {
				r.xid, lastXID = f.Code, f.start
			}
			// What the driver counted stays counted.
			switch f.Code {
			case 48, 94, 95:
				r.dbe++
			case 63:
				r.remapped++
			}
		}
	}
	return !lost
}

// index is what the driver numbers a board with at second k.
func (n *node) index(b *board, k int64) int {
	at := b.index
	for _, f := range n.faults {
		if f.Kind != IndexChange || !f.holdsStep(k) {
			continue
		}
		switch at {
		case f.target.device:
			at = f.Index
		case f.Index:
			at = f.target.device
		}
	}
	return at
}

// host is what the node's exporter prints as its host's name: the name of its own
// pod, once that was replaced.
func (n *node) host(t time.Duration) string {
	host := n.cfg.Name
	for _, f := range n.faults {
		if f.Kind == ExporterReplaced && f.holds(t) {
			host = f.Host
		}
	}
	return host
}
