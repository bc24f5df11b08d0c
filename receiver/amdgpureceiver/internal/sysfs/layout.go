// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package sysfs

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpumetrics"
)

// layout is which files a board has, and what each is. It is found once, and again after
// a file was gone.
type layout struct {
	numbers  []number
	metrics  string // path of gpu_metrics, "" without
	fills    []fill // readings of gpu_metrics that no file has
	blocks   []block
	badPages string // path, "" without
}

// number is a file with one integer.
type number struct {
	path   string
	family string
	labels string  // of the family alone: `,clock_type="GPU_CLOCK_TYPE_SYSTEM"`
	div    float64 // from the file's unit to that of the family
}

type fill struct {
	quantity gpumetrics.Quantity
	family   string
	mul      float64
}

// block is a part of a board with counters of errors of its own.
type block struct{ path, name string }

const mebibyte = 1 << 20

// deviceFiles are below the PCI device.
var deviceFiles = []number{
	{path: "gpu_busy_percent", family: "gpu_gfx_activity", div: 1},
	{path: "mem_busy_percent", family: "gpu_umc_activity", div: 1},
	{path: "mem_info_vram_used", family: "gpu_used_vram", div: mebibyte},
	{path: "mem_info_vram_total", family: "gpu_total_vram", div: mebibyte},
	{path: "pcie_replay_count", family: "pcie_replay_count", div: 1},
}

// Sensors of hwmon have numbers that differ between boards: the label names what each is.
var sensors = map[string][]struct {
	label string
	number
}{
	"temp": { // m°C
		{"junction", number{family: "gpu_junction_temperature", div: 1000}},
		{"edge", number{family: "gpu_edge_temperature", div: 1000}},
		{"mem", number{family: "gpu_memory_temperature", div: 1000}},
	},
	"freq": { // Hz
		{"sclk", number{family: "gpu_clock", labels: `,clock_type="GPU_CLOCK_TYPE_SYSTEM"`, div: 1e6}},
		{"mclk", number{family: "gpu_clock", labels: `,clock_type="GPU_CLOCK_TYPE_MEMORY"`, div: 1e6}},
	},
}

const (
	powerFamily    = "gpu_package_power"
	powerCapFamily = "sysfs_power1_cap" // µW
	microwatts     = 1e6
)

// energyOfExporter turns joules into what the exporter prints: AMD's library counts the
// steps of the accumulator as 15.3 µJ each.
const energyOfExporter = 15.3 / gpumetrics.EnergyStep

// fills are in the exporter's units already, energy aside. A file that has the reading, of
// one of the families in unless, is preferred.
var fills = []struct {
	fill
	unless []string
}{
	{fill{gpumetrics.Energy, "gpu_energy_consumed", energyOfExporter}, nil},
	{fill{gpumetrics.Power, powerFamily, 1}, []string{powerFamily}},
	{fill{gpumetrics.Hotspot, "gpu_junction_temperature", 1}, []string{"gpu_junction_temperature", "gpu_edge_temperature"}},
	{fill{gpumetrics.Memory, "gpu_memory_temperature", 1}, []string{"gpu_memory_temperature"}},
	{fill{gpumetrics.Activity, "gpu_gfx_activity", 1}, []string{"gpu_gfx_activity"}},
	{fill{gpumetrics.MemoryActivity, "gpu_umc_activity", 1}, []string{"gpu_umc_activity"}},
}

// blockNames are blocks that the exporter calls differently.
var blockNames = map[string]string{"pcie_bif": "bif"}

// findLayout looks at the folders of a board. What it cannot list, it does not have.
func findLayout(device string, read func(path string) ([]byte, error)) *layout {
	l := &layout{}
	has := namesIn(device)
	for _, f := range deviceFiles {
		if has[f.path] {
			l.add(f, device)
		}
	}
	if hwmon := findHwmon(device, read); hwmon != "" {
		l.addSensors(hwmon, read)
	}
	if has["gpu_metrics"] {
		l.metrics = filepath.Join(device, "gpu_metrics")
		for _, f := range fills {
			if !slices.ContainsFunc(l.numbers, func(n number) bool { return slices.Contains(f.unless, n.family) }) {
				l.fills = append(l.fills, f.fill)
			}
		}
	}
	ras := filepath.Join(device, "ras")
	for name := range namesIn(ras) {
		if b, ok := strings.CutSuffix(name, "_err_count"); ok {
			path := filepath.Join(ras, name)
			if other, ok := blockNames[b]; ok {
				b = other
			}
			l.blocks = append(l.blocks, block{path, b})
		}
		if name == "gpu_vram_bad_pages" {
			l.badPages = filepath.Join(ras, name)
		}
	}
	slices.SortFunc(l.blocks, func(a, b block) int { return strings.Compare(a.path, b.path) })
	return l
}

func (l *layout) add(n number, folder string) {
	n.path = filepath.Join(folder, n.path)
	l.numbers = append(l.numbers, n)
}

func namesIn(folder string) map[string]bool {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	has := make(map[string]bool, len(entries))
	for _, e := range entries {
		has[e.Name()] = true
	}
	return has
}

// findHwmon returns the folder of the driver's sensors, "" without one.
func findHwmon(device string, read func(path string) ([]byte, error)) string {
	folder := filepath.Join(device, "hwmon")
	for _, name := range slices.Sorted(maps.Keys(namesIn(folder))) {
		at := filepath.Join(folder, name)
		if text, err := read(filepath.Join(at, "name")); err == nil && strings.TrimSpace(string(text)) == "amdgpu" {
			return at
		}
	}
	return ""
}

func (l *layout) addSensors(hwmon string, read func(path string) ([]byte, error)) {
	has := namesIn(hwmon)
	// The average and the momentary power are never both used: they would be one series.
	for _, name := range []string{"power1_average", "power1_input"} {
		if !has[name] {
			continue
		}
		if _, err := read(filepath.Join(hwmon, name)); err != nil && causeOf(err) == NoData {
			continue // some kernels have the file on boards that do not measure it
		}
		l.add(number{path: name, family: powerFamily, div: microwatts}, hwmon)
		break
	}
	if has["power1_cap"] {
		l.add(number{path: "power1_cap", family: powerCapFamily, div: 1}, hwmon)
	}
	for _, name := range slices.Sorted(maps.Keys(has)) {
		sensor, ok := strings.CutSuffix(name, "_label")
		if !ok || !has[sensor+"_input"] {
			continue
		}
		of := sensors[strings.TrimRight(sensor, "0123456789")]
		text, err := read(filepath.Join(hwmon, name))
		if err != nil {
			continue
		}
		for _, s := range of {
			if s.label == strings.TrimSpace(string(text)) {
				s.path = sensor + "_input"
				l.add(s.number, hwmon)
			}
		}
	}
}
