// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gaudi

import "github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"

// The families of the exporter (1.24). A reading that fails prints 0: where a device
// cannot have 0, it is no value, and a counter that is back on the next page was not reset.
const (
	Utilization devicetable.ID = iota
	MemoryUsed
	MemoryTotal
	MemoryFree
	Power
	PowerLimit
	Energy
	ChipTemperature
	BoardTemperature
	ThresholdGPU
	ThresholdMemory
	ThresholdSlowdown
	ThresholdShutdown
	Clock
	PCIeReplays
	ReplacedCorrected
	ReplacedUncorrected
	ReplacementPending
	PortStatus
)

const celsius = devicetable.Celsius

// fields are the known fields, by their constants. Units are those of the library that the
// exporter asks (hlml.h).
var fields = []devicetable.Field{
	Utilization: {Name: "habanalabs_utilization", Unit: "%", Div: 100, Bounds: devicetable.Ratio},
	MemoryUsed:  {Name: "habanalabs_memory_used_bytes", Unit: "By"},
	MemoryTotal: {Name: "habanalabs_memory_total_bytes", Unit: "By"},
	MemoryFree:  {Name: "habanalabs_memory_free_bytes", Unit: "By"},

	Power:      {Name: "habanalabs_power_mW", Unit: "mW", Div: 1000, ZeroIsAbsent: true, Bounds: devicetable.Watts},
	PowerLimit: {Name: "habanalabs_power_default_limit_mW", Unit: "mW", Div: 1000, ZeroIsAbsent: true, Bounds: devicetable.Watts},
	Energy:     {Name: "habanalabs_energy", Unit: "mJ", Div: 1000, ZeroIsAbsent: true, Glitches: true},

	// The thresholds are limits, whatever dashboards make of them.
	ChipTemperature:   {Name: "habanalabs_temperature_onchip", Unit: "Cel", ZeroIsAbsent: true, Bounds: celsius},
	BoardTemperature:  {Name: "habanalabs_temperature_onboard", Unit: "Cel", ZeroIsAbsent: true, Bounds: celsius},
	ThresholdGPU:      {Name: "habanalabs_temperature_threshold_gpu", Unit: "Cel", ZeroIsAbsent: true, Bounds: celsius},
	ThresholdMemory:   {Name: "habanalabs_temperature_threshold_memory", Unit: "Cel", ZeroIsAbsent: true, Bounds: celsius},
	ThresholdSlowdown: {Name: "habanalabs_temperature_threshold_slowdown", Unit: "Cel", ZeroIsAbsent: true, Bounds: celsius},
	ThresholdShutdown: {Name: "habanalabs_temperature_threshold_shutdown", Unit: "Cel", ZeroIsAbsent: true, Bounds: celsius},

	Clock:       {Name: "habanalabs_clock_soc_mhz", Unit: "MHz", Mul: 1e6, ZeroIsAbsent: true},
	PCIeReplays: {Name: "habanalabs_pcie_replay_count", Unit: "{replay}", Glitches: true},

	// Rows that were replaced, by cause, in spite of the name.
	ReplacedCorrected:   {Name: "habanalabs_pending_rows_with_single_bit_ecc_errors", Unit: "{row}", Glitches: true},
	ReplacedUncorrected: {Name: "habanalabs_pending_rows_with_double_bit_ecc_errors", Unit: "{row}", Glitches: true},
	ReplacementPending:  {Name: "habanalabs_pending_rows_state", Unit: "flag"},
	PortStatus:          {Name: "habanalabs_nic_port_status", Unit: "flag", Label: "port,port_type"},
}

// dropped are copies: two of them with another unit than their names state, and one that
// is a constant.
var dropped = []string{
	"habanalabs_clock_soc_max_mhz",
	"habanalabs_pcie_receive_throughput", "habanalabs_pcie_transmit_throughput",
	"habanalabs_kube_info",
	"accelerator_gpu_utilization", "accelerator_memory_clock_hertz", "accelerator_memory_total_bytes",
	"accelerator_memory_used_bytes", "accelerator_power_usage_watts", "accelerator_sm_clock_hertz",
	"accelerator_temperature_celcius",
}
