// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package processes makes points of the processes on a device: of each, or summed by
// container.
package processes

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/cgroupowner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/internal/podnames"
)

// By is what processes are summed by: the key processes::by.
type By string

// The values of the key.
const (
	Off       By = "off"
	Container By = "container"
	Process   By = "process"
)

// Every is the shortest time between two lists of processes: reading them costs the driver
// much more than other calls.
const Every = 5 * time.Second

// early is how much earlier than that a scrape may come: one of an interval of Every is not
// on time to the millisecond.
const early = Every / 10

// Options are those of Table.
type Options struct {
	By   By
	Max  int    // rows of a device, 0: 256
	Root string // what /proc is below
	// Refused counts what has no row of its own, see the Reason constants. May be nil.
	Refused func(reason string, n int)
	// Pods are those whose names are known. nil: those of the process.
	Pods *podnames.Registry
}

// Reasons for Options.Refused.
const (
	ReasonLimit   = "limit"   // more processes or containers than rows
	ReasonProcess = "process" // no process id, a type that is not known, or more than 100 %
)

// Row is what one process, or those of one container, use of a device.
type Row struct {
	Type    string // compute, graphics or mps
	PID     int    // 0: several processes
	Name    string // of the executable, empty: not known
	Owner   Owner
	Memory  float64    // bytes
	Used    [4]float64 // 0 to 1, by the place in Tasks
	HasMem  bool
	HasUsed bool
}

// Tasks are the values of gpu.process.task.
var Tasks = [...]string{"sm", "memory", "encoder", "decoder"}

// Owner is who runs a process, as far as it is known.
type Owner struct {
	cgroupowner.Owner
	// Other is why nothing is known: OwnerOther or OwnerUnknown.
	Other string
}

// The values of gpu.process.owner.
const (
	OwnerOther   = "other"   // nothing names an owner, or there are more rows than the limit
	OwnerUnknown = "unknown" // the process is not in /proc
)

// Table finds out who runs the processes on devices. It is not safe for concurrent use.
type Table struct {
	opts    Options
	proc    proc
	asked   time.Time // when lists were asked for last
	foreign bool
}

// New returns a Table.
func New(opts Options) *Table {
	opts.Max = cmp.Or(opts.Max, 256)
	if opts.Refused == nil {
		opts.Refused = func(string, int) {}
	}
	if opts.Pods == nil {
		opts.Pods = podnames.Process
	}
	if opts.By != Off {
		opts.Pods.Want()
	}
	return &Table{opts: opts, proc: newProc(opts.Root)}
}

// Due reports whether lists of processes may be asked for now; they are, if so.
func (t *Table) Due(now time.Time) bool {
	if t.opts.By == Off || !t.asked.IsZero() && now.Sub(t.asked) < Every-early && !now.Before(t.asked) {
		return false
	}
	t.asked = now
	return true
}

// Foreign reports whether the processes of the newest lists are in another PID namespace,
// so that nothing is known of them but their numbers.
func (t *Table) Foreign() bool { return t.foreign }

// Resolve returns the rows by hw.id of the board or the instance.
func (t *Table) Resolve(boards []nvmlproto.Board) map[string][]Row {
	devices := map[string][]Row{}
	for i := range boards {
		b := &boards[i]
		if b.Processes == nil || b.Return != nvmlproto.Success || b.Lost || !deviceid.HasGPU(b.UUID) {
			continue
		}
		if b.Processes.Left > 0 {
			t.opts.Refused(ReasonLimit, b.Processes.Left)
		}
		t.list(b, devices)
	}
	t.own(devices)
	for id, rows := range devices {
		if t.opts.By == Container {
			for i := range rows {
				rows[i].PID, rows[i].Name = 0, ""
			}
			rows = sum(rows)
		}
		devices[id] = t.limit(rows)
	}
	return devices
}

// types are those of processes. One that is in several lists counts once, as the first of
// these: the driver repeats its memory in each.
var types = []string{"mps", "compute", "graphics"}

// list adds the processes of a board, each once for the board or an instance.
func (t *Table) list(b *nvmlproto.Board, devices map[string][]Row) {
	type key struct {
		device string
		pid    int
	}
	at := map[key]int{}
	for _, p := range b.Processes.List {
		rank := slices.Index(types, p.Type)
		if p.PID <= 0 || rank < 0 || p.GI != nil && *p.GI < 0 {
			t.opts.Refused(ReasonProcess, 1)
			continue
		}
		k := key{b.UUID, p.PID}
		if p.GI != nil {
			k.device = deviceid.MIG(b.UUID, strconv.Itoa(*p.GI))
		}
		i, known := at[k]
		if !known {
			i = len(devices[k.device])
			at[k] = i
			devices[k.device] = append(devices[k.device], Row{Type: p.Type, PID: p.PID})
		}
		row := &devices[k.device][i]
		if rank < slices.Index(types, row.Type) {
			row.Type = p.Type
		}
		if m := float64(p.Memory); m >= 0 && m < 1<<60 {
			row.Memory, row.HasMem = max(row.Memory, m), true
		}
	}
	for _, u := range b.Processes.Busy {
		i, known := at[key{b.UUID, u.PID}]
		if !known {
			continue // it has ended, or is on an instance
		}
		row := &devices[b.UUID][i]
		for task, percent := range [...]int{u.SM, u.Memory, u.Encoder, u.Decoder} {
			if percent < 0 || percent > 100 {
				t.opts.Refused(ReasonProcess, 1)
				row.Used, row.HasUsed = [4]float64{}, false
				break
			}
			row.Used[task], row.HasUsed = float64(percent)/100, true
		}
	}
}

// own finds the owners of all rows.
func (t *Table) own(devices map[string][]Row) {
	found, rows := 0, 0
	t.proc.start()
	for _, of := range devices {
		for i := range of {
			rows++
			if p := t.proc.read(of[i].PID); p != nil {
				found++
				of[i].Name, of[i].Owner = p.name, p.owner
			} else {
				of[i].Owner = Owner{Other: OwnerUnknown}
			}
		}
	}
	t.proc.forget()
	// In a namespace of its own, a number that is there can be that of another process.
	hosts, known := t.proc.hosts()
	t.foreign = found < rows && (known && !hosts || !known && found == 0)
	if !t.foreign {
		return
	}
	for _, of := range devices {
		for i := range of {
			of[i].Name, of[i].Owner = "", Owner{Other: OwnerUnknown}
		}
	}
}

// sum adds up the rows with the same type, process and owner. A sum of which a part is not
// known is not known; a process without utilization did not run.
func sum(rows []Row) []Row {
	type key struct {
		kind, name string
		pid        int
		owner      Owner
	}
	at := map[key]int{}
	var out []Row
	for _, r := range rows {
		k := key{r.Type, r.Name, r.PID, r.Owner}
		i, known := at[k]
		if !known {
			at[k] = len(out)
			out = append(out, r)
			continue
		}
		s := &out[i]
		s.HasMem = s.HasMem && r.HasMem
		s.Memory += r.Memory
		s.HasUsed = s.HasUsed || r.HasUsed
		for task := range s.Used {
			s.Used[task] = min(1, s.Used[task]+r.Used[task])
		}
	}
	return out
}

// limit keeps the rows with the most memory and sums the others. They are ordered by their
// memory, then by what they are.
func (t *Table) limit(rows []Row) []Row {
	// sort.Slice, since slices.SortFunc is compiled for each type of entries: 20 kB here.
	sort.Slice(rows, func(i, j int) bool {
		a, b := &rows[i], &rows[j]
		return 0 > cmp.Or(cmp.Compare(b.Memory, a.Memory), cmp.Compare(a.PID, b.PID), cmp.Compare(a.Type, b.Type),
			cmp.Compare(a.Owner.Other, b.Owner.Other), cmp.Compare(a.Owner.ContainerID, b.Owner.ContainerID), cmp.Compare(a.Owner.PodUID, b.Owner.PodUID),
			cmp.Compare(a.Owner.SlurmJob, b.Owner.SlurmJob), cmp.Compare(a.Owner.Unit, b.Owner.Unit))
	})
	if len(rows) <= t.opts.Max {
		return rows
	}
	t.opts.Refused(ReasonLimit, len(rows)-t.opts.Max)
	for i := t.opts.Max; i < len(rows); i++ {
		rows[i].PID, rows[i].Name, rows[i].Owner = 0, "", Owner{Other: OwnerOther}
	}
	return sum(rows)
}

// Holder is a container of a pod that uses a device, for gpu_pod: an entry of dcgm.holders.
type Holder struct {
	Namespace, Pod, Container, PodUID string
	Memory                            int64   // bytes; HasMemory
	Utilization                       float64 // 0 to 1; HasUtilization
	HasMemory, HasUtilization         bool
}

// Holders returns the containers that share a device, by its rows: those of pods whose names
// are known. A device that one container uses has none.
func (t *Table) Holders(rows []Row) []Holder {
	of := map[cgroupowner.Owner]*Row{}
	for _, r := range rows {
		if r.Owner.ContainerID == "" || r.Owner.PodUID == "" {
			continue
		}
		s := of[r.Owner.Owner]
		if s == nil {
			of[r.Owner.Owner] = &r
			continue
		}
		s.HasMem = s.HasMem && r.HasMem
		s.Memory += r.Memory
		s.HasUsed = s.HasUsed || r.HasUsed
		s.Used[0] = min(1, s.Used[0]+r.Used[0])
	}
	if len(of) < 2 {
		return nil
	}
	var out []Holder
	for who, r := range of {
		pod, container, ok := t.opts.Pods.Container(who.PodUID, who.ContainerID)
		if !ok {
			continue
		}
		out = append(out, Holder{
			Namespace: pod.Namespace, Pod: pod.Name, Container: container, PodUID: who.PodUID,
			Memory: int64(math.Round(r.Memory)), HasMemory: r.HasMem, Utilization: r.Used[0], HasUtilization: r.HasUsed,
		})
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		return 0 > cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container))
	})
	return out
}
