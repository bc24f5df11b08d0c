// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package gpusim simulates a fleet of GPU nodes as dcgm-exporter and inference
// engines show them: pages of several exporter versions and engines, load curves,
// pods, MIG and scripted faults, and it serves the truth behind the pages.
//
// Everything is deterministic. The page of a node at a time is a function of
// the seed, the configuration, the faults and the time since the start; values
// stand still within one second and counters are sums over whole seconds. The
// time of engines only moves forward.
package gpusim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/rename"
)

// Fleet is a simulated fleet. Its methods may be called at the same time.
type Fleet struct {
	cfg   Config
	clock func() time.Time
	start time.Time
	nodes []*node

	mu     sync.Mutex // guards faults and the boards' states; never held over I/O
	faults faults
	served served
}

type node struct {
	fleet   *Fleet
	cfg     Node
	exp     *exporter
	boards  []*board
	pods    heldPods
	faults  faults
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
	fl.served.fleet = fl
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
	if n.exp.first && len(nc.MIG) > 0 {
		return nil, fmt.Errorf("mig: an exporter of version %s knows none, use 2.1 or later", nc.Version)
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
	if r := time.Duration(nc.Refresh); r < 0 || r%time.Second != 0 {
		return nil, fmt.Errorf("refresh: %s has to be whole seconds, not below 0", r)
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

// page is what the node's exporter prints at a time; stamp is that of its samples.
func (n *node) page(t time.Duration, stamp time.Time, host string) []byte {
	readings := n.read(step(Duration(t)))
	suffix := "\n"
	if !stamp.IsZero() {
		suffix = " " + strconv.FormatInt(stamp.UnixMilli(), 10) + "\n"
	}
	w := &writer{node: n, suffix: suffix}
	lines := make([]line, 0, len(readings))
	for i := range readings {
		r := &readings[i]
		lines = append(lines, line{r, w.labels(r, n.faults.index(r.board, step(Duration(t))), host), w.attributes(r, false), w.attributes(r, true)})
	}
	w.Grow(len(lines) * 40 * 300)
	shown := w.fields()
	switch {
	case n.exp.headerFirst:
		for _, f := range shown {
			w.header(f)
		}
		for _, l := range lines {
			for _, f := range shown {
				w.sample(f, l)
			}
		}
	default:
		for _, f := range shown {
			w.family(f, lines)
		}
		w.watchFamily(lines)
		w.pathFamily(lines)
		if n.cfg.Fields == "all" {
			w.xidFamilies(lines, step(Duration(t)))
		}
	}
	return w.Bytes()
}

// driver is the version of the node's driver, faults aside.
func (n *node) driver() string { return cmp.Or(n.cfg.Driver, n.exp.driver) }

// elapsed is the fleet's time: never negative.
func (fl *Fleet) elapsed(t time.Time) time.Duration { return max(t.Sub(fl.start), 0) }

// read gives the rows of a node's page at second k.
func (n *node) read(k int64) []reading {
	var rows []reading
	for _, b := range n.boards {
		for _, r := range b.read(k) {
			if n.faults.mark(&r, k) {
				rows = append(rows, n.rows(r, k)...)
			}
		}
	}
	return rows
}

// Page is the page of a node's exporter at a time. Faults of the exporter
// itself (down, slow, cut off) are not in it: they happen in the server.
func (fl *Fleet) Page(name string, at time.Time) ([]byte, error) { return fl.PageOf(name, "", at) }

// PageOf is the page of the exporter that calls its host so, "" of the node's own.
func (fl *Fleet) PageOf(name, host string, at time.Time) ([]byte, error) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	n := fl.node(name)
	if n == nil {
		return nil, fmt.Errorf("unknown node %q", name)
	}
	t := n.at(fl.elapsed(at))
	if host == "" {
		host = n.faults.host(n.cfg.Name, t)
	}
	for _, f := range n.faults {
		if f.Kind == ExporterFrozen && f.holds(t) {
			if f.frozen == nil {
				f.frozen = n.page(f.start, time.Time{}, host)
			}
			return f.frozen, nil
		}
	}
	stamp := time.Time{}
	for _, f := range n.faults {
		if f.Kind == ClockSkew && f.Timestamps && f.holds(t) {
			stamp = at.Add(time.Duration(f.Skew))
		}
	}
	page := n.page(n.refreshed(t), stamp, host)
	for _, f := range n.faults {
		if f.Kind == FieldsRenamed && f.holds(t) {
			return rename.Page(page), nil
		}
	}
	return page, nil
}

// Devices lists the GPUs of a node as they are now.
func (fl *Fleet) Devices(node string) ([]DeviceInfo, error) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	n := fl.node(node)
	if n == nil {
		return nil, fmt.Errorf("unknown node %q", node)
	}
	var out []DeviceInfo
	k := step(Duration(n.at(fl.elapsed(fl.clock()))))
	for i, b := range n.boards {
		d := b.info()
		d.UUID = b.current(n.faults.harm(b, k, false).boards)
		d.Index, d.NUMANode, d.Driver = n.faults.index(b, k), i*2/max(len(n.boards), 2), n.faults.driver(n.driver(), k)
		out = append(out, d)
	}
	return out, nil
}

// Transport is how the exporter of a node responds, and counts a request if it is for
// one.
func (fl *Fleet) Transport(name string, request bool) Transport {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	n := fl.node(name)
	if n == nil {
		return Transport{}
	}
	return n.faults.transport(fl.elapsed(fl.clock()), request)
}

// Elsewhere are the faults that started an exporter at another address, by their ids.
func (fl *Fleet) Elsewhere() map[string]Fault {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	t, out := fl.elapsed(fl.clock()), map[string]Fault{}
	for _, f := range fl.faults {
		if (f.Kind == ExporterTwice || f.Kind == ExporterReplaced) && f.Port != 0 && f.holds(t) {
			out[f.id] = f.Fault
		}
	}
	return out
}

// Now is the time on the fleet's clock.
func (fl *Fleet) Now() time.Time { return fl.clock() }

// TruthAt returns the truth at a time.
func (fl *Fleet) TruthAt(at time.Time) Truth {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	out := truthOf(at, fl.elapsed(at), fl.faults, fl.nodes)
	out.Engines = fl.served.truth(fl.elapsed(at))
	return out
}

// HealthOf is the health of a node and of its boards at a time, which may lie in the
// past.
func (fl *Fleet) HealthOf(name string, at time.Time) (node Health, boards []BoardHealth, err error) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	n := fl.node(name)
	if n == nil {
		return node, nil, fmt.Errorf("unknown node %q", name)
	}
	k := step(Duration(n.at(fl.elapsed(at))))
	for _, b := range n.boards {
		boards = append(boards, BoardHealth{b.current(n.faults.harm(b, k, false).boards), b.verdictAt(k)})
	}
	return healthOf(n, k), boards, nil
}

// Engines lists the engines and gateways that have a pod now.
func (fl *Fleet) Engines() []EngineTruth {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	return fl.served.truth(fl.elapsed(fl.clock()))
}

// EnginePage is the page of a pod's engine at a time, or at the latest time that any
// engine was asked for. The error is engines.ErrDown while nothing listens.
func (fl *Fleet) EnginePage(namespace, pod string, at time.Time) ([]byte, error) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	fl.served.advance(fl.elapsed(at))
	return fl.served.page(namespace, pod)
}

// EngineTransport is how the page of a pod's engine comes now, and counts a request if
// it is for one.
func (fl *Fleet) EngineTransport(namespace, pod string, request bool) Transport {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	fl.served.advance(fl.elapsed(fl.clock()))
	return fl.served.transport(namespace, pod, request)
}

// RequestsOf is the truth about the requests of a service later than from and not later
// than to, which are times since the start of the fleet and not after now.
func (fl *Fleet) RequestsOf(namespace, service string, from, to time.Duration) (RequestsTruth, error) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	fl.served.advance(fl.elapsed(fl.clock()))
	return fl.served.requests(namespace, service, from, min(to, fl.served.at))
}

// MaxUsage is the longest time that UsageOf adds up.
const MaxUsage = 48 * time.Hour

// UsageOf is the truth about the owners of all devices in the seconds from one time since
// the start on and before another: every second of a device is of one owner, of several
// that share it, or of none. It is that of the pods of now and of those that faults bring
// and take.
func (fl *Fleet) UsageOf(from, to time.Duration) ([]UsageTruth, error) {
	if from < 0 || to < from || to-from > MaxUsage {
		return nil, fmt.Errorf("from %s to %s: it has to be from 0 on, and %s at most", from, to, MaxUsage)
	}
	fl.mu.Lock()
	defer fl.mu.Unlock()
	sums := map[UsageTruth]*UsageTruth{}
	for _, n := range fl.nodes {
		for _, b := range n.boards {
			for k := step(Duration(from)); k < step(Duration(to)); k++ {
				b.addUsage(sums, k)
			}
		}
	}
	all := make([]UsageTruth, 0, len(sums))
	for _, u := range sums {
		all = append(all, *u)
	}
	slices.SortFunc(all, func(x, y UsageTruth) int {
		return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.Device, y.Device), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Pod, y.Pod))
	})
	return all, nil
}
