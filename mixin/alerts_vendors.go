// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// Devices of a vendor, by the form of their ids.
var (
	amd      = matching(queries.Device, "GPU-([0-9a-fA-F]{16}|serial-.*)(/.*)?")
	notAMD   = queries.Selector(queries.Device + `!~"GPU-([0-9a-fA-F]{16}|serial-.*)(/.*)?"`)
	notGaudi = queries.Selector(queries.Device + `!~"GAUDI-.*"`)
)

// vendorAlerts are about what boards of other vendors than NVIDIA report.
func vendorAlerts() []alert {
	of := func(labels ...string) []string { return append(slices.Clone(aDevice), labels...) }
	code := func(offset string) string {
		return most(queries.Of(names.GPURASLast.Prometheus(), not("gpu_ras_severity", "non_fatal_corrected"))+offset, of("gpu_ras_severity")...)
	}
	const before = " offset 10m"
	link := queries.Of(names.GPULinkUp.Prometheus(), not("gpu_link_kind", names.LinkExternal))
	return []alert{
		{
			name: "GPURASError", severity: critical, cause: true, event: names.EventRAS,
			expr: "(" + code("") + " > 0 unless " + code("") + " == " + code(before) + ")" +
				" and" + on(queries.Cluster, queries.Device) + queries.Of(queries.MemoryUsage) + before,
			summary: "AFID {{ $value }} ({{ $labels.gpu_ras_severity }}) on " + theDevice + ".",
			meaning: "An AMD board wrote a record of an error that was not corrected. The metric has the newest code alone: that the same one came again is not seen.",
			check: []string{
				"What the code means: it is in the event `gpu.ras`, with what to do.",
				"`amd-smi ras --cper` and `dmesg | grep -i amdgpu` on the node.",
			},
			do: []string{"As the event has it: a fatal error asks for a reset of the board, or more; another one has ended what used the data."},
		},
		{
			name: "GPUMemoryRepairFailed", severity: critical, cause: true, event: names.EventMemoryRepair,
			expr:    most(names.GPURetiredFailure.Prometheus(), aDevice...) + " == 1",
			summary: "Faulty memory of " + theDevice + " could not be replaced.",
			meaning: "A page of the memory could not be retired: the next error there is lost data.",
			check:   []string{"`amd-smi bad-pages` on the node."},
			do:      []string{"Drain the board and have it replaced. The flag stays until then."},
		},
		{
			name: "GPUMemoryRepairPending", severity: warning, cause: true, event: names.EventMemoryRepair,
			expr:    most(names.GPURemappedRowsPending.Prometheus(), aDevice...) + " == 1",
			summary: "Memory rows of " + theDevice + " wait for a reset to be replaced.",
			meaning: "Faulty rows have spares, which are used from the next reset of the board on. Work may go on until then.",
			check:   []string{"`hl-smi -q -d ROW_REPLACEMENT` on the node."},
			do:      []string{"Drain the board and reset it, or reboot the node, when it is free."},
		},
		{
			name: "GPUDeviceReset", severity: warning, event: names.EventDeviceReset,
			expr:    most("increase("+names.GPUDeviceResets.Prometheus()+"[10m])", aDevice...) + " > 0",
			summary: theDevice + " was reset.",
			meaning: "The driver, or a person, reset the device: what ran on it has ended.",
			check:   []string{"`dmesg` on the node: why the driver did.", "Whether errors were counted before: the events of the device."},
			do:      []string{"Restart what ran there. If it happens again, run the vendor's diagnostics."},
		},
		{
			name: "GPULinkDown", severity: critical, cause: true, event: names.EventLinkDown, wait: "1m",
			expr:    most(link, of("gpu_link_index")...) + " == 0 and " + most("max_over_time("+link+"[1d])", of("gpu_link_index")...) + " == 1",
			summary: "Port {{ $labels.gpu_link_index }} of " + theDevice + " has no link to another GPU any more.",
			meaning: "Work on several boards of the node is slower, or fails. Ports to the network do not count.",
			check:   []string{"`hl-smi -n link` on Gaudi, `xpu-smi topology -m` on Intel.", "Whether the board at the other end was reset, or is lost."},
			do:      []string{"Reset the boards at both ends when they are free. If the port stays down, check their seats and contact the vendor."},
		},
	}
}
