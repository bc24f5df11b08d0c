// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

var (
	xids    = []string{"DCGM_FI_DEV_XID_ERRORS", "DCGM_EXP_XID_ERRORS_TOTAL"}
	ecc     = []string{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"}
	pending = []string{"DCGM_FI_DEV_ROW_REMAP_PENDING", "DCGM_FI_DEV_RETIRED_PENDING"}
	failure = []string{"DCGM_FI_DEV_ROW_REMAP_FAILURE"}
	width   = []string{"DCGM_FI_DEV_PCIE_LINK_WIDTH"}
	events  = []string{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS"}

	training = []gpusim.Pod{{Namespace: "training", Name: "trainer-0", Container: "main", Devices: []string{"1"}, Load: gpusim.Training}}
)

type f = gpusim.Fault

func xid(code int, after gpusim.Duration) f { return f{Kind: gpusim.XID, Code: code, After: after} }

func reset(after gpusim.Duration) f { return f{Kind: gpusim.GPUReset, After: after} }

func reboot(after gpusim.Duration) f { return f{Kind: gpusim.Reboot, After: after, For: 2 * m} }

// byMinute is for how much longer what is judged by windows of minutes may take.
const byMinute = 100 * time.Second

// scripts are for every reason alone, and for several things at once.
var scripts = []script{
	{name: "well", never: true, lasts: 5 * time.Minute, pods: training},
	{name: "recovery action", raises: []string{"recovery_action"}, inputs: []string{recoveryField}, lasts: 8 * time.Minute, faults: []f{
		{Kind: gpusim.RecoveryAction, Code: 1, After: m, For: m}, {Kind: gpusim.RecoveryAction, Code: 3, After: 3 * m, For: m},
		{Kind: gpusim.RecoveryAction, Code: 7, After: 5 * m, For: m},
	}},
	{name: "a recovery action replaces the code", raises: []string{"recovery_action"}, inputs: []string{recoveryField}, lasts: 10 * time.Minute, faults: []f{
		xid(79, m), {Kind: gpusim.RecoveryAction, Code: 2, After: m}, reboot(4 * m),
	}},
	{name: "no recovery action, whatever the code", never: true, inputs: []string{recoveryField}, lasts: 5 * time.Minute, faults: []f{xid(119, m)}},
	{name: "the same code on all boards of a pod", never: true, lasts: 40 * time.Minute,
		pods: []gpusim.Pod{{Namespace: "a", Name: "first", Container: "main", Devices: []string{"0", "1"}, Load: gpusim.Inference}},
		faults: []f{
			xid(13, 2*m), {Kind: gpusim.XID, Code: 13, Device: "0", After: 3 * m}, {Kind: gpusim.PodGone, After: 10 * m, Pod: &gpusim.Pod{Namespace: "a", Name: "first"}},
			{Kind: gpusim.NewPod, After: 15 * m, Pod: &gpusim.Pod{Namespace: "b", Name: "second", Container: "main", Devices: []string{"0", "1"}, Load: gpusim.Inference}},
			xid(13, 20*m), {Kind: gpusim.XID, Code: 13, Device: "0", After: 20*m + 30*s},
		}},
	{name: "a code that asks for a reset", raises: []string{"xid_reset"}, inputs: xids, lasts: 8 * time.Minute, faults: []f{xid(119, m), reset(4 * m)}},
	{name: "an error of memory that was remapped", raises: []string{"xid_reset", "ecc_uncorrected"}, inputs: append(ecc, xids...), lasts: 8 * time.Minute, faults: []f{
		xid(48, m), xid(63, 2*m), reset(4 * m),
	}},
	{name: "off the bus", raises: []string{"xid_restart"}, inputs: xids, lasts: 10 * time.Minute, faults: []f{xid(79, m), reset(3 * m), reboot(5 * m)}},
	{name: "off the bus since the boot", raises: []string{"xid_restart"}, inputs: xids, late: 25 * time.Second, lasts: 12 * time.Minute, faults: []f{
		reboot(m), xid(79, 3*m), reboot(6 * m),
	}},
	{name: "off the bus before a boot, and since it", raises: []string{"xid_restart"}, inputs: xids, late: 25 * time.Second, lasts: 14 * time.Minute, faults: []f{
		xid(79, m), reboot(2 * m), xid(79, 4*m+s), reboot(9 * m),
	}},
	{name: "a virtual machine to restart", raises: []string{"xid_restart"}, inputs: xids, lasts: 8 * time.Minute, faults: []f{xid(151, m), reboot(4 * m)}},
	{name: "a link by its code", raises: []string{"xid_link"}, inputs: xids, lasts: 10 * time.Minute, faults: []f{xid(145, m), reset(3 * m), xid(74, 5*m), reset(7 * m)}},
	{name: "mechanics", raises: []string{"xid_mechanics"}, inputs: xids, interval: time.Minute, lasts: 25 * time.Hour, faults: []f{xid(54, 5*m), reset(20 * m), reboot(h)}},
	{name: "software", raises: []string{"xid_software"}, inputs: xids, lasts: 10 * time.Minute, faults: []f{
		xid(78, m), reset(3 * m), {Kind: gpusim.DriverReload, Driver: "590.48.01", After: 6 * m},
	}},
	{name: "support", raises: []string{"xid_support"}, inputs: xids, lasts: 8 * time.Minute, faults: []f{xid(58, m), reset(4 * m)}},
	{name: "the application", never: true, lasts: 6 * time.Minute, faults: []f{xid(13, m), xid(43, 2*m), xid(45, 2*m), xid(31, 3*m), xid(94000, 4*m)}},
	{name: "the same code under two pods", raises: []string{"xid_repeated"}, inputs: xids, interval: time.Minute, lasts: 26 * time.Hour,
		pods: []gpusim.Pod{{Namespace: "a", Name: "first", Container: "main", Devices: []string{"1"}, Load: gpusim.Inference}},
		faults: []f{
			xid(31, 5*m), {Kind: gpusim.PodGone, After: 10 * m, Pod: &gpusim.Pod{Namespace: "a", Name: "first"}},
			{Kind: gpusim.NewPod, After: 15 * m, Pod: &gpusim.Pod{Namespace: "b", Name: "second", Container: "main", Devices: []string{"1"}, Load: gpusim.Inference}},
			xid(31, 30*m),
		}},
	{name: "the same code under one pod", never: true, lasts: 20 * time.Minute, pods: training, faults: []f{xid(31, 2*m), xid(31, 8*m)}},
	{name: "contained, without a count", raises: []string{"ecc_uncorrected"}, inputs: append(ecc, xids...), states: []string{"degraded"}, lasts: 8 * time.Minute, faults: []f{xid(94, m), reset(4 * m)}},
	{name: "not contained, without a count", raises: []string{"ecc_uncorrected", "xid_reset"}, inputs: append(ecc, xids...), states: []string{"failed"}, lasts: 8 * time.Minute, faults: []f{xid(95, m), reset(4 * m)}},
	{name: "uncorrected errors", raises: []string{"ecc_uncorrected"}, inputs: append(ecc, xids...), states: []string{"degraded"}, lasts: 8 * time.Minute, faults: []f{
		xid(94, m), {Kind: gpusim.ECC, Rate: 6, After: m, For: m}, reset(4 * m),
	}},
	{name: "uncorrected errors without a code", raises: []string{"ecc_uncorrected"}, inputs: ecc, states: []string{"failed"}, lasts: 8 * time.Minute, faults: []f{
		{Kind: gpusim.ECC, Rate: 6, After: m, For: m}, reset(4 * m),
	}},
	{name: "uncorrected errors without remapping", raises: []string{"ecc_uncorrected"}, inputs: ecc, model: "T4", states: []string{"failed"}, lasts: 8 * time.Minute, faults: []f{
		{Kind: gpusim.ECC, After: m}, {Kind: gpusim.DriverReload, After: 4 * m},
	}},
	{name: "corrected errors, and those of before", never: true, lasts: 4 * time.Minute, faults: []f{
		{Kind: gpusim.ECC, Corrected: true, Count: 50_000_000, After: m}, {Kind: gpusim.ECC, Lifetime: true, Count: 100, After: 2 * m},
	}},
	{name: "a row to remap", raises: []string{"remap_pending"}, inputs: pending, lasts: 6 * time.Minute, faults: []f{{Kind: gpusim.RowRemapPending, After: m}, reset(4 * m)}},
	{name: "a page to retire", raises: []string{"remap_pending"}, inputs: pending, model: "T4", lasts: 5 * time.Minute, faults: []f{{Kind: gpusim.RowRemapPending, After: m, For: 2 * m}}},
	{name: "a row that was not remapped", raises: []string{"remap_failed"}, inputs: failure, lasts: 8 * time.Minute, faults: []f{
		{Kind: gpusim.RowRemapFailure, After: m, For: 5 * m}, reset(3 * m),
	}},
	{name: "remapped rows", raises: []string{"remap_worn"}, stays: true, inputs: []string{"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"}, lasts: 6 * time.Minute, faults: []f{
		{Kind: gpusim.RemapWorn, Count: 511, After: m}, {Kind: gpusim.RemapWorn, Count: 1, After: 2 * m}, reset(4 * m),
	}},
	{name: "a bank without spare rows", raises: []string{"remap_worn"}, stays: true, inputs: []string{"DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE"}, lasts: 4 * time.Minute, faults: []f{
		{Kind: gpusim.RemapWorn, After: m},
	}},
	{name: "SRAM", raises: []string{"sram_worn"}, inputs: []string{"DCGM_FI_DEV_THRESHOLD_SRM"}, lasts: 5 * time.Minute, faults: []f{{Kind: gpusim.SRAMExceeded, After: m, For: 2 * m}}},
	{name: "all pages", raises: []string{"pages_worn"}, stays: true, states: []string{"failed"}, inputs: []string{"DCGM_FI_DEV_RETIRED_DBE"}, model: "T4", lasts: 5 * time.Minute, faults: []f{
		{Kind: gpusim.RetiredPages, Count: 63, After: m}, reset(3 * m),
	}},
	{name: "many pages", raises: []string{"pages_worn"}, stays: true, states: []string{"predicted_failure"}, inputs: []string{"DCGM_FI_DEV_RETIRED_DBE"}, model: "T4", lasts: 5 * time.Minute, faults: []f{
		{Kind: gpusim.RetiredPages, Count: 14, After: m}, {Kind: gpusim.RetiredPages, Count: 2, After: 2 * m},
	}},
	{name: "replays of links", raises: []string{"nvlink_errors"}, inputs: []string{"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"}, slack: byMinute, lasts: 16 * time.Minute, faults: []f{
		{Kind: gpusim.NVLinkErrors, Count: 3, After: m},
	}},
	{name: "CRC errors of links", raises: []string{"nvlink_errors"}, inputs: []string{"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"}, slack: byMinute, lasts: 20 * time.Minute, faults: []f{
		{Kind: gpusim.NVLinkErrors, Mode: "crc_data", Rate: 3000, After: m, For: 2 * m}, {Kind: gpusim.NVLinkErrors, Mode: "crc_data", Rate: 6600, After: 4 * m, For: m},
	}},
	{name: "a path that is lost", raises: []string{"nvlink_down"}, inputs: []string{pathField}, lasts: 6 * time.Minute, faults: []f{{Kind: gpusim.NVLinkDown, Index: 0, After: m, For: 3 * m}}},
	{name: "fabric", raises: []string{"fabric"}, inputs: []string{"DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY"}, states: []string{"failed", "degraded"}, lasts: 8 * time.Minute, faults: []f{
		{Kind: gpusim.Fabric, Mode: "limited", After: m, For: 2 * m}, {Kind: gpusim.Fabric, After: 3 * m, For: 2 * m},
	}},
	{name: "replays of PCIe", raises: []string{"pcie_replays"}, inputs: []string{"DCGM_FI_DEV_PCIE_REPLAY_COUNTER"}, slack: byMinute, lasts: 30 * time.Minute, faults: []f{
		{Kind: gpusim.PCIeReplays, Rate: 60, After: 2 * m, For: 8 * m},
	}},
	{name: "few replays of PCIe", never: true, lasts: 15 * time.Minute, faults: []f{{Kind: gpusim.PCIeReplays, Rate: 28, After: m}}},
	{name: "half of the lanes", raises: []string{"pcie_width"}, inputs: width, slack: byMinute, pods: training, lasts: 30 * time.Minute, faults: []f{{Kind: gpusim.PCIeWidth, After: m, For: 15 * m}}},
	{name: "a lower generation", raises: []string{"pcie_width"}, inputs: []string{"DCGM_FI_DEV_PCIE_LINK_GEN"}, slack: byMinute, pods: training, lasts: 30 * time.Minute, faults: []f{
		{Kind: gpusim.PCIeWidth, Generation: 3, After: m, For: 15 * m},
	}},
	{name: "an idle link", never: true, lasts: 15 * time.Minute, faults: []f{{Kind: gpusim.PCIeWidth, Lanes: 8, Generation: 1, After: m}}},
	{name: "a link that saves power", never: true, pods: training, lasts: 15 * time.Minute, faults: []f{{Kind: gpusim.PCIeWidth, Mode: "idle", Generation: 1, After: m}}},
	{name: "throttled", raises: []string{"throttle"}, inputs: events, slack: byMinute, lasts: 30 * time.Minute, faults: []f{{Kind: gpusim.Throttle, After: 2 * m, For: 8 * m}}},
	{name: "braked", raises: []string{"throttle"}, inputs: events, slack: byMinute, lasts: 30 * time.Minute, faults: []f{{Kind: gpusim.Throttle, Mode: "hw_power_brake", After: 2 * m, For: 8 * m}}},
	{name: "a power cap", never: true, lasts: 15 * time.Minute, faults: []f{{Kind: gpusim.Throttle, Mode: "sw_power", After: m}}},
	{name: "hot", raises: []string{"temperature"}, inputs: []string{"DCGM_FI_DEV_GPU_TEMP"}, lasts: 10 * time.Minute, faults: []f{{Kind: gpusim.Temperature, Degrees: 80, After: m, For: 5 * m}}},
	{name: "lost", raises: []string{"lost"}, inputs: []string{device}, lasts: 8 * time.Minute, faults: []f{{Kind: gpusim.GPULost, After: m, For: 4 * m}}},
	{name: "a watch that fails", raises: []string{"dcgm_watch"}, inputs: []string{watchField}, states: []string{"failed", "degraded"}, lasts: 8 * time.Minute, faults: []f{
		{Kind: gpusim.DCGMWatch, Watch: "MEM", After: m, For: 2 * m}, {Kind: gpusim.DCGMWatch, Watch: "POWER", After: 4 * m, For: 2 * m},
	}},
	{name: "a watch of power that warns", never: true, lasts: 4 * time.Minute, inputs: []string{watchField}, faults: []f{{Kind: gpusim.DCGMWatch, Watch: "THERMAL", Mode: "warn", After: m}}},
	{name: "again and again", raises: []string{"recurring", "xid_reset"}, inputs: xids, interval: 5 * time.Minute, lasts: 8 * 24 * time.Hour, faults: []f{
		xid(119, h), reset(2 * h), xid(119, 10*h), reset(12 * h), xid(119, 20*h), reset(22 * h),
	}},

	{name: "a board too few", raises: []string{"count"}, inputs: []string{nodeInfo}, expected: 2, lasts: 12 * time.Minute, faults: []f{{Kind: gpusim.GPULost, Device: "0", For: 8 * m}}},
	{name: "lost of those that are expected", raises: []string{"lost", "count"}, expected: 2, lasts: 14 * time.Minute, faults: []f{
		{Kind: gpusim.GPULost, After: 6 * m, For: 4 * m},
	}},
	{name: "acknowledged", raises: []string{"xid_restart", "ecc_uncorrected", "remap_failed"}, inputs: append(slices.Concat(ecc, failure), xids...), lasts: 12 * time.Minute, faults: []f{
		xid(79, m), {Kind: gpusim.ECC, After: m}, {Kind: gpusim.RowRemapFailure, After: 2 * m, For: 6 * m},
		{Kind: gpusim.Acknowledged, Device: "0", After: 4*m + 7*s}, {Kind: gpusim.Acknowledged, After: 6*m + 7*s},
	}},
	{name: "again and again, acknowledged", raises: []string{"recurring", "xid_reset"}, inputs: xids, lasts: 40 * time.Minute, faults: []f{
		xid(119, 2*m), reset(4 * m), xid(119, 8*m), reset(12 * m), xid(119, 16*m), reset(20 * m), {Kind: gpusim.Acknowledged, After: 30*m + 7*s},
	}},

	{name: "nothing from the exporter", never: true, states: []string{unknown}, lasts: 8 * time.Minute, faults: []f{{Kind: gpusim.ExporterDown, After: 2 * m, For: 3 * m}}},
	{name: "a frozen exporter", never: true, states: []string{unknown}, lasts: 12 * time.Minute, faults: []f{{Kind: gpusim.ExporterFrozen, After: 2 * m, For: 5 * m}}},
	{name: "renamed fields", never: true, states: []string{unknown}, lasts: 12 * time.Minute, faults: []f{{Kind: gpusim.FieldsRenamed, After: 2 * m, For: 5 * m}}},
	{name: "renamed fields from the start", never: true, states: []string{unknown}, lasts: 8 * time.Minute, faults: []f{{Kind: gpusim.FieldsRenamed, For: 4 * m}}},
	{name: "a code, and renamed fields", raises: []string{"xid_reset"}, inputs: xids, states: []string{unknown}, lasts: 12 * time.Minute, faults: []f{
		xid(119, m), {Kind: gpusim.FieldsRenamed, After: 3 * m, For: 3 * m}, reset(9 * m),
	}},
	{name: "a page that is cut", never: true, states: []string{unknown}, lasts: 8 * time.Minute, faults: []f{{Kind: gpusim.PageCut, After: 2 * m, For: 3 * m}}},
	{name: "a code, and nothing from the exporter", raises: []string{"xid_reset"}, inputs: xids, states: []string{unknown}, lasts: 12 * time.Minute, faults: []f{
		xid(119, m), {Kind: gpusim.ExporterDown, After: 3 * m, For: 3 * m}, reset(9 * m),
	}},
	{name: "a reset while the exporter is down", raises: []string{"xid_reset"}, inputs: xids, states: []string{unknown}, lasts: 12 * time.Minute, faults: []f{
		xid(119, m), {Kind: gpusim.ExporterDown, After: 3 * m, For: 5 * m}, reset(5 * m),
	}},
	{name: "a code while the exporter is down", raises: []string{"xid_reset", "ecc_uncorrected"}, inputs: append(ecc, xids...), states: []string{unknown}, lasts: 12 * time.Minute, faults: []f{
		{Kind: gpusim.ExporterDown, After: 2 * m, For: 4 * m}, xid(95, 4*m), reset(9 * m),
	}},
	{name: "a row to remap, frozen, reset", raises: []string{"remap_pending"}, inputs: pending, states: []string{unknown}, lasts: 14 * time.Minute, faults: []f{
		{Kind: gpusim.RowRemapPending, After: m}, {Kind: gpusim.ExporterFrozen, After: 3 * m, For: 5 * m}, reset(11 * m),
	}},
	{name: "errors of links, frozen for long", raises: []string{"nvlink_errors"}, inputs: []string{"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"}, slack: byMinute, states: []string{unknown}, lasts: 32 * time.Minute, faults: []f{
		{Kind: gpusim.NVLinkErrors, Mode: "recovery", After: m}, {Kind: gpusim.ExporterFrozen, After: 3 * m, For: 14 * m},
	}},
	{name: "throttled, and nothing from the exporter", raises: []string{"throttle"}, inputs: events, slack: byMinute, states: []string{unknown}, lasts: 40 * time.Minute, faults: []f{
		{Kind: gpusim.Throttle, After: 2 * m, For: 8 * m}, {Kind: gpusim.ExporterDown, After: 12 * m, For: 5 * m},
	}},
	{name: "errors of memory, cut, reset", raises: []string{"ecc_uncorrected", "remap_pending"}, inputs: append(ecc, pending...), states: []string{unknown}, lasts: 12 * time.Minute, faults: []f{
		{Kind: gpusim.ECC, Count: 2, After: m}, {Kind: gpusim.RowRemapPending, After: m}, {Kind: gpusim.PageCut, After: 3 * m, For: 3 * m}, reset(9 * m),
	}},
	{name: "off the bus, lost, killed, booted", raises: []string{"xid_restart", "lost"}, states: []string{"failed", unknown}, lasts: 14 * time.Minute,
		kills: []time.Duration{3 * time.Minute, 5 * time.Minute}, faults: []f{xid(79, m), {Kind: gpusim.GPULost, After: 2 * m, For: 5 * m}, reboot(7 * m)}},
	{name: "killed with reasons of all kinds", raises: []string{"xid_link", "remap_failed", "ecc_uncorrected", "sram_worn"}, states: []string{"failed"}, lasts: 12 * time.Minute,
		kills: []time.Duration{75 * time.Second, 2*time.Minute + 5*time.Second, 4 * time.Minute, 7 * time.Minute}, faults: []f{
			xid(74, m), {Kind: gpusim.RowRemapFailure, After: 2 * m, For: 6 * m}, {Kind: gpusim.ECC, After: 3 * m}, {Kind: gpusim.SRAMExceeded, After: 3 * m, For: 5 * m}, reset(9 * m),
		}},
	{name: "killed, and the exporter down", raises: []string{"xid_restart"}, states: []string{"failed", unknown}, lasts: 14 * time.Minute,
		kills: []time.Duration{4 * time.Minute}, faults: []f{xid(79, m), {Kind: gpusim.ExporterDown, After: 3 * m, For: 3 * m}, reboot(8 * m)}},
	{name: "booted with everything", raises: []string{"xid_restart", "xid_reset", "ecc_uncorrected", "remap_pending", "fabric"}, states: []string{"failed", unknown}, lasts: 12 * time.Minute, faults: []f{
		xid(79, m), xid(119, 2*m), {Kind: gpusim.ECC, After: m}, {Kind: gpusim.RowRemapPending, After: m}, {Kind: gpusim.Fabric, After: 2 * m, For: 4 * m}, reboot(5 * m),
	}},
	{name: "another device", raises: []string{"xid_reset"}, inputs: xids, lasts: 10 * time.Minute, faults: []f{
		xid(62, m), {Kind: gpusim.Fabric, Device: "0", After: 2 * m, For: 3 * m}, {Kind: gpusim.GPUReset, Device: "0", After: 4 * m}, reset(7 * m),
	}},
}
