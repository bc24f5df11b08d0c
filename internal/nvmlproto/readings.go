// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlproto

import (
	"slices"
	"strconv"
)

// Group is a group of readings, as the receiver's key groups names it.
type Group string

// The groups.
const (
	GroupUtilization Group = "utilization"
	GroupMemory      Group = "memory"
	GroupPower       Group = "power"
	GroupTemperature Group = "temperature"
	GroupClocks      Group = "clocks"
	GroupThrottle    Group = "throttle"
	GroupProfiling   Group = "profiling"
	GroupIO          Group = "io"
	GroupErrors      Group = "errors"
	GroupXID         Group = "xid"       // events; no readings
	GroupInventory   Group = "inventory" // identity is read whatever the groups
	GroupProcesses   Group = "processes" // lists; no readings
)

// Groups are all of them, in the order of the documentation.
var Groups = []Group{
	GroupUtilization, GroupMemory, GroupPower, GroupTemperature, GroupClocks, GroupThrottle,
	GroupProfiling, GroupIO, GroupErrors, GroupXID, GroupInventory, GroupProcesses,
}

// Method is how a reading is read. Layouts, units and versions are the helper's.
type Method string

// The methods. Those with an argument have it in Reading.Argument.
const (
	MethodUtilization   Method = "nvmlDeviceGetUtilizationRates" // 0 gpu, 1 memory
	MethodEncoder       Method = "nvmlDeviceGetEncoderUtilization"
	MethodDecoder       Method = "nvmlDeviceGetDecoderUtilization"
	MethodMemory        Method = "nvmlDeviceGetMemoryInfo" // 0 total, 1 used, 2 free, 3 reserved
	MethodPower         Method = "nvmlDeviceGetPowerUsage"
	MethodPowerLimit    Method = "nvmlDeviceGetPowerManagementLimit"
	MethodEnforcedLimit Method = "nvmlDeviceGetEnforcedPowerLimit"
	MethodEnergy        Method = "nvmlDeviceGetTotalEnergyConsumption"
	MethodTemperature   Method = "nvmlDeviceGetTemperature"
	MethodThreshold     Method = "nvmlDeviceGetTemperatureThreshold" // 0 shutdown, 1 slowdown, 2 memory max, 3 GPU max
	MethodMargin        Method = "nvmlDeviceGetMarginTemperature"
	MethodClock         Method = "nvmlDeviceGetClockInfo" // 1 SM, 2 memory, 3 video
	MethodClockReasons  Method = "nvmlDeviceGetCurrentClocksEventReasons"
	MethodFans          Method = "nvmlDeviceGetFanSpeed"       // a row for each fan
	MethodPCIe          Method = "nvmlDeviceGetPcieThroughput" // 0 transmit, 1 receive
	MethodField         Method = "nvmlDeviceGetFieldValues"    // the field id
	MethodGPM           Method = "nvmlGpmMetricsGet"           // the GPM metric's id
	MethodLicence       Method = "nvmlDeviceGetGridLicensableFeatures"
)

// Reading is one number that the library gives of a board, or of an instance as well.
type Reading struct {
	Name  string
	Group Group
	// Also is a second group that the reading is read for, empty for most.
	Also     Group
	Method   Method
	Argument int
	// Scope is the field value's scope: 2^32-1 is all links.
	Scope uint32
	// Instances have a value of their own. The others are the board's alone.
	Instances bool
	// Links is that the reading is the sum over the NVLinks, asked for link by link with the
	// link's number as scope.
	Links bool
	// Hourly readings are read on Request.Hourly alone.
	Hourly bool
}

const allLinks = 1<<32 - 1

// Readings are all readings, in the order in which they are read. A board that has GPM
// gives no pcie reading, and one that has nvlink.data no nvlink.bytes.
var Readings = []Reading{
	{Name: "utilization.gpu", Group: GroupUtilization, Method: MethodUtilization},
	{Name: "utilization.memory", Group: GroupUtilization, Method: MethodUtilization, Argument: 1},
	{Name: "utilization.encoder", Group: GroupUtilization, Method: MethodEncoder},
	{Name: "utilization.decoder", Group: GroupUtilization, Method: MethodDecoder},
	{Name: "memory.total", Group: GroupMemory, Also: GroupInventory, Method: MethodMemory, Instances: true},
	{Name: "memory.used", Group: GroupMemory, Method: MethodMemory, Argument: 1, Instances: true},
	{Name: "memory.free", Group: GroupMemory, Method: MethodMemory, Argument: 2, Instances: true},
	{Name: "memory.reserved", Group: GroupMemory, Method: MethodMemory, Argument: 3, Instances: true},
	{Name: "power.usage", Group: GroupPower, Method: MethodPower},
	{Name: "power.limit.management", Group: GroupPower, Method: MethodPowerLimit},
	{Name: "power.limit.enforced", Group: GroupPower, Method: MethodEnforcedLimit},
	{Name: "energy", Group: GroupPower, Method: MethodEnergy},
	{Name: "temperature.gpu", Group: GroupTemperature, Method: MethodTemperature},
	{Name: "temperature.memory", Group: GroupTemperature, Method: MethodField, Argument: 82},
	{Name: "temperature.limit.shutdown", Group: GroupTemperature, Method: MethodThreshold, Hourly: true},
	{Name: "temperature.limit.slowdown", Group: GroupTemperature, Method: MethodThreshold, Argument: 1, Hourly: true},
	{Name: "temperature.limit.memory_max", Group: GroupTemperature, Method: MethodThreshold, Argument: 2, Hourly: true},
	{Name: "temperature.limit.gpu_max", Group: GroupTemperature, Method: MethodThreshold, Argument: 3, Hourly: true},
	{Name: "temperature.margin", Group: GroupTemperature, Method: MethodMargin},
	{Name: "fan.speed", Group: GroupTemperature, Method: MethodFans},
	{Name: "clock.sm", Group: GroupClocks, Method: MethodClock, Argument: 1},
	{Name: "clock.memory", Group: GroupClocks, Method: MethodClock, Argument: 2},
	{Name: "clock.video", Group: GroupClocks, Method: MethodClock, Argument: 3},
	{Name: "clock.reasons", Group: GroupThrottle, Method: MethodClockReasons},
	{Name: "violation.power", Group: GroupThrottle, Method: MethodField, Argument: 74},
	{Name: "violation.thermal", Group: GroupThrottle, Method: MethodField, Argument: 75},
	{Name: "violation.sync_boost", Group: GroupThrottle, Method: MethodField, Argument: 76},
	{Name: "violation.board_limit", Group: GroupThrottle, Method: MethodField, Argument: 77},
	{Name: "violation.low_util", Group: GroupThrottle, Method: MethodField, Argument: 78},
	{Name: "violation.reliability", Group: GroupThrottle, Method: MethodField, Argument: 79},
	{Name: "gpm.graphics", Group: GroupProfiling, Also: GroupUtilization, Method: MethodGPM, Argument: 1, Instances: true},
	{Name: "gpm.sm", Group: GroupProfiling, Method: MethodGPM, Argument: 2, Instances: true},
	{Name: "gpm.sm_occupancy", Group: GroupProfiling, Method: MethodGPM, Argument: 3, Instances: true},
	{Name: "gpm.dram", Group: GroupProfiling, Method: MethodGPM, Argument: 10, Instances: true},
	{Name: "gpm.tensor", Group: GroupProfiling, Method: MethodGPM, Argument: 5, Instances: true},
	{Name: "gpm.fp64", Group: GroupProfiling, Method: MethodGPM, Argument: 11, Instances: true},
	{Name: "gpm.fp32", Group: GroupProfiling, Method: MethodGPM, Argument: 12, Instances: true},
	{Name: "gpm.fp16", Group: GroupProfiling, Method: MethodGPM, Argument: 13, Instances: true},
	{Name: "gpm.imma", Group: GroupProfiling, Method: MethodGPM, Argument: 9, Instances: true},
	{Name: "gpm.hmma", Group: GroupProfiling, Method: MethodGPM, Argument: 7, Instances: true},
	{Name: "gpm.dfma", Group: GroupProfiling, Method: MethodGPM, Argument: 6, Instances: true},
	{Name: "gpm.integer", Group: GroupProfiling, Method: MethodGPM, Argument: 4, Instances: true},
	{Name: "gpm.pcie.transmit", Group: GroupIO, Method: MethodGPM, Argument: 20},
	{Name: "gpm.pcie.receive", Group: GroupIO, Method: MethodGPM, Argument: 21},
	{Name: "gpm.nvlink.receive", Group: GroupIO, Method: MethodGPM, Argument: 60},
	{Name: "gpm.nvlink.transmit", Group: GroupIO, Method: MethodGPM, Argument: 61},
	{Name: "pcie.transmit", Group: GroupIO, Method: MethodPCIe},
	{Name: "pcie.receive", Group: GroupIO, Method: MethodPCIe, Argument: 1},
	{Name: "nvlink.data.transmit", Group: GroupIO, Method: MethodField, Argument: 138, Scope: allLinks},
	{Name: "nvlink.data.receive", Group: GroupIO, Method: MethodField, Argument: 139, Scope: allLinks},
	{Name: "nvlink.bytes.transmit", Group: GroupIO, Method: MethodField, Argument: 202, Links: true},
	{Name: "nvlink.bytes.receive", Group: GroupIO, Method: MethodField, Argument: 204, Links: true},
	{Name: "pcie.replays", Group: GroupErrors, Method: MethodField, Argument: 94},
	{Name: "nvlink.crc_flit", Group: GroupErrors, Method: MethodField, Argument: 38},
	{Name: "nvlink.crc_data", Group: GroupErrors, Method: MethodField, Argument: 45},
	{Name: "nvlink.replay", Group: GroupErrors, Method: MethodField, Argument: 52},
	{Name: "nvlink.recovery", Group: GroupErrors, Method: MethodField, Argument: 59},
	{Name: "ecc.volatile.corrected", Group: GroupErrors, Method: MethodField, Argument: 3},
	{Name: "ecc.volatile.uncorrected", Group: GroupErrors, Method: MethodField, Argument: 4},
	{Name: "ecc.aggregate.corrected", Group: GroupErrors, Method: MethodField, Argument: 5},
	{Name: "ecc.aggregate.uncorrected", Group: GroupErrors, Method: MethodField, Argument: 6},
	{Name: "retired.corrected", Group: GroupErrors, Method: MethodField, Argument: 29},
	{Name: "retired.uncorrected", Group: GroupErrors, Method: MethodField, Argument: 30},
	{Name: "retired.pending", Group: GroupErrors, Method: MethodField, Argument: 31},
	{Name: "remapped.corrected", Group: GroupErrors, Method: MethodField, Argument: 142},
	{Name: "remapped.uncorrected", Group: GroupErrors, Method: MethodField, Argument: 143},
	{Name: "remapped.pending", Group: GroupErrors, Method: MethodField, Argument: 144},
	{Name: "remapped.failure", Group: GroupErrors, Method: MethodField, Argument: 145},
	{Name: "recovery.action", Group: GroupInventory, Method: MethodField, Argument: 230},
	{Name: "vgpu.licensed", Group: GroupInventory, Method: MethodLicence},
}

// In reports whether the reading is read for one of some groups.
func (r *Reading) In(groups []Group) bool {
	return slices.Contains(groups, r.Group) || r.Also != "" && slices.Contains(groups, r.Also)
}

// Symbol is what the reading's call is named in announcements and own metrics, such as
// nvmlDeviceGetClockInfo(1).
func (r *Reading) Symbol() string {
	switch r.Method {
	case MethodThreshold, MethodClock, MethodPCIe:
		return string(r.Method) + "(" + strconv.Itoa(r.Argument) + ")"
	default:
		return string(r.Method)
	}
}
