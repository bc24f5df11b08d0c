// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intel

import "github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"

// The fields. Those of 1.x are called xpum_*, those of 2.x hw_*; the last ones are on no
// page, and settle.go computes them.
const (
	EngineRatio devicetable.ID = iota
	EngineGroup
	EUActive
	MemoryUsed
	MemoryRatio
	MemoryBandwidth
	MemoryRead
	MemoryWrite
	PowerWatts
	EnergyJoules
	Temperature
	TemperatureMax
	FrequencyMHz
	CacheErrors
	NonComputeErrors
	ProgrammingErrors
	DriverErrors
	Resets
	PCIeRead
	PCIeWrite
	FabricTX
	XelinkStatus

	Utilization2
	MemoryUsage2
	MemorySize2
	MemoryBandwidth2
	MemoryIO2
	Power2
	Energy2
	Temperature2
	Frequency2
	Errors2
	IO2
	Status2
	Throttle2

	General
	Compute
	Media
	Copy
	Render
	Used
	Size
	Bandwidth
	ReadIO
	WriteIO
	PCIeIn
	PCIeOut
	Power
	Energy
	GPUTemp
	MemoryTemp
	SMClock
	MemoryClock
	MediaClock
	Corrected
	Uncorrected
	Blocks
	Programming
	Driver
	ResetCount
	LinkUp
)

// fields are the known fields, by their constants. Names and labels are those of XPU
// Manager's sources: rest/prometheus_exporter of 1.x, receiver/intelxpu/sysman of 2.x.
// The Python client of 1.x appends _total to counters.
var fields = []devicetable.Field{
	// 1.x. Ratios are printed as such, although their HELP states percent.
	EngineRatio:     {Name: "xpum_engine_ratio", Type: devicetable.Double, Unit: "1", Bounds: devicetable.Ratio},
	EngineGroup:     {Name: "xpum_engine_group_ratio", Type: devicetable.Double, Unit: "1", Bounds: devicetable.Ratio, Label: "type", Several: devicetable.First},
	EUActive:        {Name: "xpum_eu_active_ratio", Type: devicetable.Double, Unit: "1", Bounds: devicetable.Ratio},
	MemoryUsed:      {Name: "xpum_memory_used_bytes", Unit: "By"},
	MemoryRatio:     {Name: "xpum_memory_ratio", Type: devicetable.Double, Unit: "1", Bounds: devicetable.Ratio},
	MemoryBandwidth: {Name: "xpum_memory_bandwidth_ratio", Type: devicetable.Double, Unit: "1", Bounds: devicetable.Ratio},
	MemoryRead:      {Name: "xpum_memory_read_bytes_total", Aliases: []string{"xpum_memory_read_bytes"}, Unit: "By"},
	MemoryWrite:     {Name: "xpum_memory_write_bytes_total", Aliases: []string{"xpum_memory_write_bytes"}, Unit: "By"},
	PowerWatts:      {Name: "xpum_power_watts", Type: devicetable.Double, Unit: "W", Bounds: devicetable.Watts},
	EnergyJoules:    {Name: "xpum_energy_joules_total", Aliases: []string{"xpum_energy_joules"}, Type: devicetable.Double, Unit: "J", Glitches: true},
	Temperature:     {Name: "xpum_temperature_celsius", Type: devicetable.Double, Unit: "Cel", Signed: true, Bounds: devicetable.Celsius, Label: "location"},
	TemperatureMax:  {Name: "xpum_max_temperature_celsius", Type: devicetable.Double, Unit: "Cel", Signed: true, Bounds: devicetable.Celsius, Label: "location"},
	FrequencyMHz:    {Name: "xpum_frequency_mhz", Type: devicetable.Double, Unit: "MHz", Mul: 1e6, Label: "location,type"},

	CacheErrors:       {Name: "xpum_cache_errors_total", Aliases: []string{"xpum_cache_errors"}, Unit: "{error}", Label: "type"},
	NonComputeErrors:  {Name: "xpum_non_compute_errors_total", Aliases: []string{"xpum_non_compute_errors"}, Unit: "{error}", Label: "type"},
	ProgrammingErrors: {Name: "xpum_programming_errors_total", Aliases: []string{"xpum_programming_errors"}, Unit: "{error}"},
	DriverErrors:      {Name: "xpum_driver_errors_total", Aliases: []string{"xpum_driver_errors"}, Unit: "{error}"},
	Resets:            {Name: "xpum_resets_total", Aliases: []string{"xpum_resets"}, Unit: "{reset}"},

	PCIeRead:     {Name: "xpum_pcie_read_bytes_total", Aliases: []string{"xpum_pcie_read_bytes"}, Unit: "By"},
	PCIeWrite:    {Name: "xpum_pcie_write_bytes_total", Aliases: []string{"xpum_pcie_write_bytes"}, Unit: "By"},
	FabricTX:     {Name: "xpum_fabric_tx_bytes_total", Aliases: []string{"xpum_fabric_tx_bytes"}, Unit: "By", Several: devicetable.Sum},
	XelinkStatus: {Name: "xpum_xelink_port_status", Unit: "{state}"},

	// 2.x: an OpenTelemetry Collector, whose names are written as Prometheus does.
	Utilization2:     {Name: "hw_gpu_utilization_ratio", Type: devicetable.Double, Unit: "1", Bounds: devicetable.Ratio, Label: "hw_gpu_task"},
	MemoryUsage2:     {Name: "hw_memory_usage_bytes", Unit: "By", Label: "hw_memory_location", Several: devicetable.Sum},
	MemorySize2:      {Name: "hw_memory_size_bytes", Unit: "By", Label: "hw_memory_location", Several: devicetable.Sum},
	MemoryBandwidth2: {Name: "hw_memory_bandwidth_utilization_ratio", Type: devicetable.Double, Unit: "1", Bounds: devicetable.Ratio, Label: "hw_memory_location", Several: devicetable.Mean},
	MemoryIO2:        {Name: "hw_memory_io_bytes_total", Unit: "By", Label: "hw_memory_location,network_io_direction", Several: devicetable.Sum},
	Power2:           {Name: "hw_power_watts", Type: devicetable.Double, Unit: "W", Bounds: devicetable.Watts, Label: "hw_sensor_location"},
	Energy2:          {Name: "hw_energy_joules_total", Type: devicetable.Double, Unit: "J", Label: "hw_sensor_location"},
	Temperature2:     {Name: "hw_temperature_celsius", Type: devicetable.Double, Unit: "Cel", Signed: true, Bounds: devicetable.Celsius, Label: "hw_sensor_location,statistic"},
	Frequency2:       {Name: "hw_frequency_hertz", Unit: "Hz", Label: "hw_frequency_domain,aggregation"},
	Errors2:          {Name: "hw_errors_total", Unit: "{error}", Label: "error_type,error_category", Several: devicetable.Sum},
	IO2:              {Name: "hw_gpu_io_bytes_total", Type: devicetable.Double, Unit: "By", Label: "network_io_direction"},
	// Of memory modules on a tile, too: health is the GPU's.
	Status2:   {Name: "hw_status", Scope: devicetable.Board, Unit: "1", Label: "hw_type,hw_state"},
	Throttle2: {Name: "hw_frequency_throttle_status", Unit: "1", Label: "com_intel_speed_throttle_reason"},

	// Computed from the fields above, see settle.go.
	General:     {Name: "hw_gpu_utilization_ratio of all or compute-all, the larger", Computed: true, Needs: ids(Utilization2), Unit: "1"},
	Compute:     {Name: "xpum_engine_group_ratio of compute, hw_gpu_utilization_ratio of compute-all", Computed: true, Needs: ids(EngineGroup, Utilization2), Unit: "1"},
	Media:       {Name: "xpum_engine_group_ratio of media, hw_gpu_utilization_ratio of media-all", Computed: true, Needs: ids(EngineGroup, Utilization2), Unit: "1"},
	Copy:        {Name: "xpum_engine_group_ratio of copy, hw_gpu_utilization_ratio of copy-all", Computed: true, Needs: ids(EngineGroup, Utilization2), Unit: "1"},
	Render:      {Name: "xpum_engine_group_ratio of render, hw_gpu_utilization_ratio of render-all", Computed: true, Needs: ids(EngineGroup, Utilization2), Unit: "1"},
	Used:        {Name: "hw_memory_usage_bytes of the device", Computed: true, Needs: ids(MemoryUsage2), Unit: "By"},
	Size:        {Name: "hw_memory_size_bytes of the device, xpum_memory_used_bytes by xpum_memory_ratio", Computed: true, Needs: ids(MemorySize2), Unit: "By"},
	Bandwidth:   {Name: "hw_memory_bandwidth_utilization_ratio of the device", Computed: true, Needs: ids(MemoryBandwidth2), Unit: "1"},
	ReadIO:      {Name: "hw_memory_io_bytes_total of the device, receive", Computed: true, Needs: ids(MemoryIO2), Unit: "By"},
	WriteIO:     {Name: "hw_memory_io_bytes_total of the device, transmit", Computed: true, Needs: ids(MemoryIO2), Unit: "By"},
	PCIeIn:      {Name: "hw_gpu_io_bytes_total, receive", Computed: true, Needs: ids(IO2), Unit: "By"},
	PCIeOut:     {Name: "hw_gpu_io_bytes_total, transmit", Computed: true, Needs: ids(IO2), Unit: "By"},
	Power:       {Name: "hw_power_watts of one domain", Computed: true, Needs: ids(Power2), Unit: "W"},
	Energy:      {Name: "hw_energy_joules_total of one domain", Computed: true, Needs: ids(Energy2), Unit: "J", Glitches: true},
	GPUTemp:     {Name: "xpum_temperature_celsius, xpum_max_temperature_celsius, hw_temperature_celsius of gpu: the mean, else the greatest", Computed: true, Needs: ids(Temperature, TemperatureMax, Temperature2), Unit: "Cel"},
	MemoryTemp:  {Name: "xpum_temperature_celsius, xpum_max_temperature_celsius of mem, hw_temperature_celsius of memory: the mean, else the greatest", Computed: true, Needs: ids(Temperature, TemperatureMax, Temperature2), Unit: "Cel"},
	SMClock:     {Name: "xpum_frequency_mhz of gpu and actual, hw_frequency_hertz of gpu and avg", Computed: true, Needs: ids(FrequencyMHz, Frequency2), Unit: "Hz"},
	MemoryClock: {Name: "xpum_frequency_mhz of memory and actual, hw_frequency_hertz of memory and avg", Computed: true, Needs: ids(FrequencyMHz, Frequency2), Unit: "Hz"},
	MediaClock:  {Name: "xpum_frequency_mhz of media and actual, hw_frequency_hertz of media and avg", Computed: true, Needs: ids(FrequencyMHz, Frequency2), Unit: "Hz"},
	Corrected:   {Name: "xpum_cache_errors_total and xpum_non_compute_errors_total, or hw_errors_total of all categories of hardware: correctable", Computed: true, Needs: ids(CacheErrors, NonComputeErrors, Errors2), Unit: "{error}"},
	Uncorrected: {Name: "xpum_cache_errors_total and xpum_non_compute_errors_total, or hw_errors_total of all categories of hardware: uncorrectable", Computed: true, Needs: ids(CacheErrors, NonComputeErrors, Errors2), Unit: "{error}"},
	Blocks: {
		Name: "xpum_cache_errors_total, xpum_non_compute_errors_total, hw_errors_total of a category of hardware", Computed: true, Unit: "{error}",
		Label: "type,category",
	},
	Programming: {Name: "hw_errors_total of programming_errors", Computed: true, Unit: "{error}"},
	Driver:      {Name: "hw_errors_total of driver_errors", Computed: true, Unit: "{error}"},
	ResetCount:  {Name: "hw_errors_total of reset", Computed: true, Unit: "{reset}"},
	LinkUp:      {Name: "xpum_xelink_port_status: 1 and 2 are up, 3 is down, 0 is unknown", Computed: true, Unit: "1"},
}

// dropped are families that are counted and not passed on.
var dropped = append([]string{
	"xpum_per_engine_ratio", // single engines: the groups have their mean
	// Of 2.x: texts about the GPU, which are read from every row.
	"hw_gpu_info",
	"hw_frequency_request_hertz", "hw_frequency_limit_hertz", "hw_frequency_samples",
	// Derived by the exporter from counters or from usage and size.
	"hw_memory_utilization_ratio", "hw_memory_io_rate_bytes_per_second", "hw_gpu_io_rate_bytes_per_second",
	// Milliwatts that 2.0 multiplies by 1000 where it has to divide.
	"hw_power_limit_watts",
}, created()...)

// created are the gauges that the Python client of 1.x adds to counters.
func created() (families []string) {
	for i := range fields {
		if f := &fields[i]; len(f.Aliases) == 1 {
			families = append(families, f.Aliases[0]+"_created")
		}
	}
	return families
}
