// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package nvml writes the files that the fake libnvidia-ml.so.1 of testbed/nvml/fakelib
// reads, and a root folder with sysfs, /proc and /dev of its host, from a node of a
// simulated fleet.
package nvml

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// Options say what to write, and where.
type Options struct {
	Library string // folder of the fake library
	Root    string // root folder of the host; "" writes none
	Driver  string // version; default: that of the node's exporter
	// Compute is how many compute instances a GPU instance has, by "<device>:<position>";
	// default 1.
	Compute map[string]int
	// Attach are further lines of a board's state, by its place: what a real card of its
	// kind has beside what is simulated. A key that is there already is replaced.
	Attach map[int]map[string]string
}

// Host is a node of a fleet, written into files. It is safe for concurrent use.
type Host struct {
	fleet *gpusim.Fleet
	node  string
	opts  Options

	mu      sync.Mutex // guards what is below
	at      int64      // second that was added up last; -1: not one yet
	done    map[string]*sums
	events  []Event
	written int // events that are in the file
	pids    map[int]string
	seen    map[int]int // XIDs of a board that are among the events
	kernel  *os.File    // the kernel log
	records int
}

// Event is what an event set gives, N times.
type Event struct {
	N      int
	Type   uint64
	Data   uint64
	Board  int
	GI, CI uint32 // 2^32-1: none
}

// New prepares the files of a node. Nothing is written before Write.
func New(fleet *gpusim.Fleet, node string, opts Options) *Host {
	return &Host{fleet: fleet, node: node, opts: opts, at: -1, done: map[string]*sums{}, pids: map[int]string{}, seen: map[int]int{}}
}

// Write writes the files as they are at a time, which never goes back.
func (h *Host) Write(at time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	second := int64(at.Sub(h.fleet.Start()) / time.Second)
	for k := max(h.at, second-3600); k < second; k++ {
		if k < 0 {
			continue
		}
		boards, err := h.fleet.DriverBoards(h.node, h.fleet.Start().Add(time.Duration(k)*time.Second))
		if err != nil {
			return err
		}
		for i := range boards {
			h.add(&boards[i])
		}
	}
	h.at = second
	boards, err := h.fleet.DriverBoards(h.node, at)
	if err != nil {
		return err
	}
	if err := h.host(boards); err != nil {
		return err
	}
	if err := h.xids(boards); err != nil {
		return err
	}
	if err := h.flush(); err != nil {
		return err
	}
	return replace(filepath.Join(h.opts.Library, "state"), h.state(boards, at, second))
}

func (h *Host) sums(key string) *sums {
	if h.done[key] == nil {
		h.done[key] = &sums{}
	}
	return h.done[key]
}

func instanceKey(b *gpusim.DriverBoard, r *gpusim.DriverRow) string { return b.UUID + "/" + r.UUID }

func (h *Host) add(b *gpusim.DriverBoard) {
	h.sums(b.UUID).add(&b.Row, b)
	for i := range b.Instances {
		r := &b.Instances[i]
		h.sums(instanceKey(b, r)).add(r, b)
	}
}

// driver is the version of the driver that is loaded.
func (h *Host) driver(boards []gpusim.DriverBoard) string {
	if h.opts.Driver != "" || len(boards) == 0 {
		return h.opts.Driver
	}
	return boards[0].Driver
}

func (h *Host) state(boards []gpusim.DriverBoard, at time.Time, second int64) []byte {
	var s state
	driver := h.driver(boards)
	s.line("driver", driver)
	s.line("nvml", nvmlVersion(driver))
	s.line("time", second)
	s.line("now", at.UnixMicro())
	for i := range boards {
		b := &boards[i]
		var own state
		own.board(b, i, h.sums(b.UUID))
		for key, value := range h.opts.Attach[i] {
			own.line(key, value)
		}
		rows := b.Instances
		if len(rows) == 0 {
			rows = []gpusim.DriverRow{b.Row}
		}
		for j := range rows {
			gi := -1
			if len(b.Instances) > 0 {
				gi = rows[j].ID
			}
			for k := range rows[j].Holders {
				own.process(&rows[j].Holders[k], h.pid(&rows[j].Holders[k]), gi, at.UnixMicro())
			}
		}
		index := 0
		for j := range b.Instances {
			compute := max(h.opts.Compute[fmt.Sprintf("%d:%d", i, j)], 1)
			index = own.instance(b, &b.Instances[j], index, compute, h.sums(instanceKey(b, &b.Instances[j])))
		}
		s.Write(own.Bytes())
	}
	return s.Bytes()
}

// undelivered are XIDs that the driver logs and gives to no event set.
var undelivered = []int{79, 119, 120}

// xids queues the XIDs that came since the last call, and writes them to the kernel log.
func (h *Host) xids(boards []gpusim.DriverBoard) error {
	for i := range boards {
		all := boards[i].XIDs
		for _, x := range all[min(h.seen[i], len(all)):] {
			e := Event{N: 1, Type: 8, Data: uint64(x.Code), Board: i, GI: 1<<32 - 1, CI: 1<<32 - 1}
			if x.Position >= 0 && x.Position < len(boards[i].Instances) {
				e.GI, e.CI = uint32(boards[i].Instances[x.Position].ID), 0
			}
			if !slices.Contains(undelivered, x.Code) {
				h.events = append(h.events, e)
			}
			if err := h.log(KernelXID(boards[i].PCIBusID, e.GI, e.Data)); err != nil {
				return err
			}
		}
		h.seen[i] = len(all)
	}
	return nil
}

// KernelXID is the line that the driver logs for an XID; gi is 2^32-1 for a whole board's.
func KernelXID(pci string, gi uint32, code uint64) string {
	instance := ""
	if gi != 1<<32-1 {
		instance = fmt.Sprintf(" GPU-I:%02d", gi)
	}
	return fmt.Sprintf("NVRM: Xid (PCI:%s%s): %d, pid='<unknown>', name=<unknown>", strings.ToLower(pci[4:14]), instance, code)
}

// Queue adds events.
func (h *Host) Queue(events ...Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, events...)
	return h.flush()
}

// flush writes the events.
func (h *Host) flush() error {
	if h.written == len(h.events) {
		return nil
	}
	var s state
	first := 1
	for _, e := range h.events {
		s.line(fmt.Sprint(first), e.N, e.Type, e.Data, e.Board, e.GI, e.CI)
		first += e.N
	}
	h.written = len(h.events)
	return replace(filepath.Join(h.opts.Library, "events"), s.Bytes())
}

// pid is that of a container's process.
func (h *Host) pid(holder *gpusim.DriverHolder) int {
	key := holder.UID + "/" + holder.Container
	sum := fnv.New32a()
	sum.Write([]byte(key))
	pid := 2000 + int(sum.Sum32()%30000)
	for h.pids[pid] != "" && h.pids[pid] != key {
		pid++
	}
	if h.pids[pid] == "" {
		h.pids[pid] = key
		if h.opts.Root != "" {
			_ = h.process(pid, holder)
		}
	}
	return pid
}

// ContainerID is the id of a container of a pod.
func ContainerID(uid, container string) string {
	sum := sha256.Sum256([]byte(uid + "/" + container))
	return hex.EncodeToString(sum[:])
}

// process writes /proc of a container's process.
func (h *Host) process(pid int, holder *gpusim.DriverHolder) error {
	cgroup := fmt.Sprintf("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice/cri-containerd-%s.scope",
		strings.ReplaceAll(holder.UID, "-", "_"), ContainerID(holder.UID, holder.Container))
	return WriteProcess(h.opts.Root, pid, holder.Container, "0::"+cgroup+"\n", 100)
}

// WriteProcess writes /proc/<pid> below a root folder: what is needed to know a process.
func WriteProcess(root string, pid int, name, cgroup string, start int64) error {
	folder := filepath.Join(root, "proc", fmt.Sprint(pid))
	stat := fmt.Sprintf("%d (%s) S 1 %d %d 0 -1 4194560 100 0 0 0 1 1 0 0 20 0 1 0 %d 1000 100 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", pid, name, pid, pid, start)
	for file, text := range map[string]string{"comm": name + "\n", "stat": stat, "cgroup": cgroup} {
		if err := write(filepath.Join(folder, file), text); err != nil {
			return err
		}
	}
	return nil
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// replace writes a file whole: a reader has the old one or the new one.
func replace(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
