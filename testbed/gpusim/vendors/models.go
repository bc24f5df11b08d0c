// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"fmt"
	"slices"
	"strings"
)

// Vendors that a node can have.
const (
	AMD   = "amd"
	Gaudi = "gaudi"
	Intel = "intel"
)

// Model is what the simulator knows about a board: figures of its data sheet.
type Model struct {
	Key       string // short name in configurations
	Vendor    string
	Name      string // as the exporter prints it; Gaudi's page has none
	PCIDevice uint16
	MemoryMiB int
	Idle, TDP float64 // watts
	Units     int     // XCDs of an AMD board, tiles of an Intel one, else 1
	Clock     int     // MHz at load
	Compute   []string
	// AveragePower is an MI2xx, which prints gpu_average_package_power and no busy rows.
	AveragePower bool
	// NoPower is an APU, whose package power is printed as 0.
	NoPower bool
	// PerCard is how many PCI devices a card has.
	PerCard int
	Ports   int // network ports of a Gaudi, or Xe Links
}

var models = []Model{
	{Key: "MI250X", Vendor: AMD, Name: "AMD Instinct MI250X", PCIDevice: 0x7408, MemoryMiB: 65520, Idle: 45, TDP: 280, Units: 1, Clock: 1700, Compute: []string{"spx"}, AveragePower: true},
	{Key: "MI300A", Vendor: AMD, Name: "AMD Instinct MI300A", PCIDevice: 0x74a0, MemoryMiB: 131072, Idle: 120, TDP: 550, Units: 6, Clock: 2100, Compute: []string{"spx", "tpx", "cpx"}, NoPower: true},
	{Key: "MI300X", Vendor: AMD, Name: "AMD Instinct MI300X OAM", PCIDevice: 0x74a1, MemoryMiB: 196592, Idle: 134, TDP: 750, Units: 8, Clock: 2100, Compute: []string{"spx", "dpx", "qpx", "cpx"}},
	{Key: "MI355X", Vendor: AMD, Name: "AMD Instinct MI355X OAM", PCIDevice: 0x75a3, MemoryMiB: 294896, Idle: 190, TDP: 1400, Units: 8, Clock: 2400, Compute: []string{"spx", "dpx", "qpx", "cpx"}},
	{Key: "Gaudi2", Vendor: Gaudi, PCIDevice: 0x1020, MemoryMiB: 98304, Idle: 95, TDP: 600, Units: 1, Clock: 1650, Ports: 24},
	{Key: "Gaudi3", Vendor: Gaudi, PCIDevice: 0x1060, MemoryMiB: 131072, Idle: 215, TDP: 900, Units: 1, Clock: 1600, Ports: 24},
	{Key: "Flex140", Vendor: Intel, Name: "Intel(R) Data Center GPU Flex 140", PCIDevice: 0x56c1, MemoryMiB: 5068, Idle: 9, TDP: 37, Units: 1, Clock: 1950, PerCard: 2},
	{Key: "Max1550", Vendor: Intel, Name: "Intel(R) Data Center GPU Max 1550", PCIDevice: 0x0bd5, MemoryMiB: 131072, Idle: 110, TDP: 600, Units: 2, Clock: 1600, Ports: 8},
	{Key: "B60", Vendor: Intel, Name: "Intel(R) Arc(TM) Pro B60 Graphics", PCIDevice: 0xe211, MemoryMiB: 24480, Idle: 25, TDP: 200, Units: 1, Clock: 2400},
}

// Models lists the boards of a vendor, or of all.
func Models(vendor string) []Model {
	return slices.DeleteFunc(slices.Clone(models), func(m Model) bool { return vendor != "" && m.Vendor != vendor })
}

func findModel(key string) (*Model, error) {
	known := make([]string, 0, len(models))
	for i := range models {
		if models[i].Key == key {
			return &models[i], nil
		}
		known = append(known, models[i].Key)
	}
	return nil, fmt.Errorf("unknown model %q: use one of %s", key, strings.Join(known, ", "))
}

// Partitions is how many partitions a board has in a compute mode; 1 is a whole board.
func (m *Model) Partitions(compute string) int {
	switch compute {
	case "dpx":
		return 2
	case "tpx":
		return 3
	case "qpx":
		return 4
	case "cpx":
		return m.Units
	}
	return 1
}

// Memories lists the memory modes that a model has in a compute mode.
func (m *Model) Memories(compute string) []string {
	switch {
	case m.Vendor != AMD || m.AveragePower || m.NoPower || compute == "spx":
		return []string{"nps1"}
	case compute == "dpx":
		return []string{"nps1", "nps2"}
	case m.Key == "MI355X" && compute == "cpx":
		return []string{"nps1", "nps2"}
	}
	return []string{"nps1", "nps4"}
}
