// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/strictjson"
)

// Config is nodes and what happens to them.
type Config struct {
	Seed   uint64  `json:"seed"`
	Nodes  []Node  `json:"nodes"`
	Faults []Fault `json:"faults,omitempty"`
}

// Node is a node with boards of one model and their vendor's exporter.
type Node struct {
	Name   string `json:"name"`
	Model  string `json:"model"`
	Boards int    `json:"boards"`
	// Version of the exporter: 1.3, 1.4 or 1.5 of AMD's, 1.24 of Gaudi's, 1 or 2 of
	// Intel's; default the newest.
	Version string `json:"version,omitempty"`
	Compute string `json:"compute,omitempty"` // compute mode of AMD boards: spx (default), dpx, tpx, qpx or cpx
	Memory  string `json:"memory,omitempty"`  // memory mode: nps1 (default), nps2, nps4
	Pods    []Pod  `json:"pods,omitempty"`

	Prefix       string `json:"prefix,omitempty"`        // AMD: MetricsFieldPrefix, such as amd_
	Guest        bool   `json:"guest,omitempty"`         // AMD: a virtual machine: no serial, temperatures 0, no busy rows
	SharedMemory bool   `json:"shared_memory,omitempty"` // AMD: each partition prints the memory of the whole board
	Profiler     bool   `json:"profiler,omitempty"`      // AMD: gpu_prof_*
	Replicas     int    `json:"replicas,omitempty"`      // Intel: ids of the device plugin for each card; default 1
	// Mixed is AMD's plugin with resources by mode, such as amd.com/cpx_nps4.
	Mixed bool `json:"mixed,omitempty"`
	// NoPods is an exporter that does not ask the kubelet.
	NoPods bool `json:"no_pods,omitempty"`
	// Sysfs is that who reads the page reads the node's sysfs too: a serial number is then
	// enough to know the board.
	Sysfs bool `json:"sysfs,omitempty"`
	// NoKFD leaves the topology of KFD out of the node's sysfs, as a container without
	// the render nodes sees it.
	NoKFD bool `json:"no_kfd,omitempty"`

	model *Model
}

// Pod holds devices of its node: "3" is a board, "3:1" a partition of it, "3::1" replica
// 1 of a card.
type Pod struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Container string   `json:"container"`
	Devices   []string `json:"devices"`
	// Busy is the mean utilization of the devices, 0..1; default .6.
	Busy *float64 `json:"busy,omitempty"`
}

// ReadConfig reads a configuration as JSON.
func ReadConfig(r io.Reader) (Config, error) {
	var c Config
	err := strictjson.Decode(r, &c)
	return c, err
}

var versions = map[string][]string{AMD: {"1.3", "1.4", "1.5"}, Gaudi: {"1.24"}, Intel: {"1", "2"}}

// complete fills in the defaults and refuses what cannot be.
func (n *Node) complete() error {
	var err error
	if n.model, err = findModel(n.Model); err != nil {
		return err
	}
	if n.Name == "" {
		return errors.New("name: must be given")
	}
	if n.Boards < 1 || n.Boards > 16 {
		return fmt.Errorf("boards: %d: use 1 to 16", n.Boards)
	}
	known := versions[n.model.Vendor]
	if n.Version == "" {
		n.Version = known[len(known)-1]
	}
	if !slices.Contains(known, n.Version) {
		return fmt.Errorf("version: %q: use one of %s", n.Version, strings.Join(known, ", "))
	}
	n.Replicas = max(1, n.Replicas)
	if n.model.Vendor == AMD {
		if n.Compute == "" {
			n.Compute = "spx"
		}
		if n.Memory == "" {
			n.Memory = "nps1"
		}
		if n.Guest && n.Compute != "spx" {
			return errors.New("guest: a board that is passed to a virtual machine has no partitions")
		}
		return n.mode(n.Compute, n.Memory)
	}
	if n.Compute != "" || n.Memory != "" {
		return errors.New("compute, memory: only AMD boards have such modes")
	}
	return nil
}

func (n *Node) mode(compute, memory string) error {
	if !slices.Contains(n.model.Compute, compute) {
		return fmt.Errorf("compute: %q: %s has %s", compute, n.Model, strings.Join(n.model.Compute, ", "))
	}
	if !slices.Contains(n.model.Memories(compute), memory) {
		return fmt.Errorf("memory: %q: %s in mode %s has %s", memory, n.Model, compute, strings.Join(n.model.Memories(compute), ", "))
	}
	return nil
}

// place is where a pod's device is.
type place struct{ board, part, replica int }

func parsePlace(s string) (place, error) {
	var p place
	text, replica, shared := strings.Cut(s, "::")
	board, part, parted := strings.Cut(text, ":")
	var errs [3]error
	p.board, errs[0] = strconv.Atoi(board)
	if parted {
		p.part, errs[1] = strconv.Atoi(part)
	}
	if shared {
		p.replica, errs[2] = strconv.Atoi(replica)
	}
	if err := errors.Join(errs[:]...); err != nil || p.board < 0 || p.part < 0 || p.replica < 0 {
		return p, fmt.Errorf("device %q: use BOARD, BOARD:PARTITION or BOARD::REPLICA", s)
	}
	return p, nil
}

// Kind is a kind of fault.
type Kind string

// The faults that a node can have.
const (
	ZeroUUID          Kind = "zero_uuid"          // AMD: gpu_uuid is all zero
	BadUUID           Kind = "bad_uuid"           // AMD: gpu_uuid is no UUID
	NoUUID            Kind = "no_uuid"            // AMD: gpu_uuid is not configured
	NoSerial          Kind = "no_serial"          // AMD: serial_number is empty
	SharedSerial      Kind = "shared_serial"      // AMD: every board prints the same one
	PartitionMissing  Kind = "partition_missing"  // AMD: Partition of the board is not on the page
	PartitionRepeated Kind = "partition_repeated" // AMD: Partition prints the id of the one before it
	ModeChange        Kind = "mode_change"        // AMD: the board is in the modes Compute and Memory
	MixedNames        Kind = "mixed_names"        // AMD: every row of the board again, with amd_ and another value
	EmptyPage         Kind = "empty_page"         // 200 without devices
	NoData            Kind = "no_data"            // Intel 1.x: 500 and #nodata
	RateLimit         Kind = "rate_limit"         // 429
	SlowPage          Kind = "slow_page"          // the page comes after Delay
	EnergyGlitch      Kind = "energy_glitch"      // the energy reads 200 J
	StuckEnergy       Kind = "stuck_energy"       // the energy stands still
	PowerSpike        Kind = "power_spike"        // the power reads 3.69e12 W
	DuplicateSeries   Kind = "duplicate_series"   // every row of the board twice, the second one with another value
	RAS               Kind = "ras"                // AMD: the newest CPER record has Code and Severity; it stays
	ECC               Kind = "ecc"                // Code uncorrected errors more; they stay
	Throttle          Kind = "throttle"           // the board is hot and slow
	Unhealthy         Kind = "unhealthy"          // the exporter's own health check fails
	LinkDown          Kind = "link_down"          // port Code is down
	RowsPending       Kind = "rows_pending"       // Gaudi: a row waits to be replaced
	DeviceReset       Kind = "device_reset"       // Intel: one reset more; it stays
	ReadingsFail      Kind = "readings_fail"      // Gaudi: the board's readings are 0, its serial is printed
	DeviceFails       Kind = "device_fails"       // Gaudi: readings 0, uuid na, serial empty; AMD: no rows
	BadPage           Kind = "bad_page"           // the page ends in the middle of a line
	FieldsRenamed     Kind = "fields_renamed"     // the families of the page have other names
)

var kinds = []Kind{
	ZeroUUID, BadUUID, NoUUID, NoSerial, SharedSerial, PartitionMissing, PartitionRepeated, ModeChange, MixedNames, EmptyPage, NoData,
	RateLimit, SlowPage, EnergyGlitch, StuckEnergy, PowerSpike, DuplicateSeries, RAS, ECC, Throttle, Unhealthy, LinkDown,
	RowsPending, DeviceReset, ReadingsFail, DeviceFails, BadPage, FieldsRenamed,
}

// Kinds lists the kinds of faults.
func Kinds() []Kind { return slices.Clone(kinds) }

// Fault is something that goes wrong on a node.
type Fault struct {
	Node  string              `json:"node"`
	Kind  Kind                `json:"kind"`
	After strictjson.Duration `json:"after,omitempty"` // since the start
	For   strictjson.Duration `json:"for,omitempty"`   // 0: until it is ended
	Board *int                `json:"board,omitempty"` // nil: every board

	Partition int                 `json:"partition,omitempty"`
	Compute   string              `json:"compute,omitempty"`
	Memory    string              `json:"memory,omitempty"`
	Code      int                 `json:"code,omitempty"`
	Severity  string              `json:"severity,omitempty"` // of ras; default fatal
	Delay     strictjson.Duration `json:"delay,omitempty"`    // default 20s
}
