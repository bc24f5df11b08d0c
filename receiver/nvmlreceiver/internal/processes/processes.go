// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package processes makes points of the processes on a device: of each, or summed by
// container.
package processes

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
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

// Options are those of Table.
type Options struct {
	By   By
	Max  int    // rows of a device, 0: 256
	Root string // what /proc is below
	// Refused counts what has no row of its own, see the Reason constants. May be nil.
	Refused func(reason string, n int)
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
	Used    [4]float64 // 0 to 1, by the place in Engines
	HasMem  bool
	HasUsed bool
}

// Engines are the values of gpu.process.engine.
var Engines = [...]string{"sm", "memory", "encoder", "decoder"}

// Owner is who runs a process, as far as it is known.
type Owner struct {
	ContainerID, PodUID, SlurmJob, Unit string
	// Other is why none of these is known: other or unknown. See the attribute
	// gpu.process.owner.
	Other string
}

// Holder is a container of a pod that uses a device, for gpu_pod: an entry of dcgm.holders.
type Holder struct {
	Namespace, Pod, Container, PodUID string
	Memory                            int64   // bytes; HasMemory
	Utilization                       float64 // 0 to 1; HasUtilization
	HasMemory, HasUtilization         bool
}

// Table finds out who runs the processes on devices.
type Table struct{ opts Options }

// New returns a Table.
func New(opts Options) *Table { return &Table{opts: opts} }

// Due reports whether lists of processes may be asked for now.
func (t *Table) Due(now time.Time) bool { return t.opts.By != Off }

// Foreign reports whether the processes of the newest Resolve are in another PID namespace,
// so that nothing is known of them but their numbers.
func (t *Table) Foreign() bool { return false }

// Resolve returns the rows by hw.id of the board or the instance.
func (t *Table) Resolve(boards []nvmlproto.Board) map[string][]Row { return nil }

// Write appends the points of a device's rows.
func (t *Table) Write(rows []Row, hwID string, at time.Time, to pmetric.MetricSlice) {}

// Holders returns the containers among a device's rows whose pod's name is known.
func (t *Table) Holders(rows []Row) []Holder { return nil }
