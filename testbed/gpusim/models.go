// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"fmt"
	"slices"
	"strings"
)

// Model is what the simulator knows about a GPU board. The figures are those
// of the boards' data sheets and of what their drivers report.
type Model struct {
	Key         string // short name in configurations
	Name        string // what the exporter prints as modelName
	MemoryMiB   int    // total frame buffer
	ReservedMiB int    // part of it reserved by driver and firmware
	TDPWatts    float64
	IdleWatts   float64
	MinWatts    float64 // lowest power limit that can be set
	SMClock     int     // MHz at load
	SMIdle      int     // MHz when idle
	MemClock    int     // MHz at load
	MemIdle     int     // MHz when idle; HBM never clocks down
	VideoClock  int     // MHz
	BAR1MiB     int
	HBM         bool    // has a memory temperature sensor
	NVLinkGBps  float64 // per direction, all links; 0 is no NVLink
	NVLinks     int
	NVLink5     bool // Blackwell: the old NVLink error counters are gone
	RowRemap    bool // Ampere and newer; older boards retire pages
	PCIeGen     int
	PCIeGBps    float64
	ECC         bool
	Fans        int // 0: the air of the chassis
	// Integrated: its memory is that of the machine. The driver reports none of it, no limit
	// of its power, and no profiling.
	Integrated bool
	// migGB is the memory in GB that the names of the MIG profiles carry, for
	// 1, 2, 4 and 8 eighths of the memory; zero where the board has no MIG.
	migGB [4]int
}

var models = []Model{
	{Key: "T4", Name: "Tesla T4", MemoryMiB: 15360, ReservedMiB: 444, TDPWatts: 70, IdleWatts: 10, MinWatts: 60, SMClock: 1590, SMIdle: 300, MemClock: 5000, MemIdle: 405, VideoClock: 1470, BAR1MiB: 256, PCIeGen: 3, PCIeGBps: 15.8, ECC: true},
	{Key: "L4", Name: "NVIDIA L4", MemoryMiB: 23034, ReservedMiB: 470, TDPWatts: 72, IdleWatts: 16, MinWatts: 40, SMClock: 2040, SMIdle: 210, MemClock: 6251, MemIdle: 405, VideoClock: 1770, BAR1MiB: 32768, RowRemap: true, PCIeGen: 4, PCIeGBps: 31.5, ECC: true},
	{Key: "L40S", Name: "NVIDIA L40S", MemoryMiB: 46068, ReservedMiB: 610, TDPWatts: 350, IdleWatts: 34, MinWatts: 100, SMClock: 2520, SMIdle: 210, MemClock: 9001, MemIdle: 405, VideoClock: 1965, BAR1MiB: 65536, RowRemap: true, PCIeGen: 4, PCIeGBps: 31.5, ECC: true},
	{Key: "A100-SXM4-40GB", Name: "NVIDIA A100-SXM4-40GB", MemoryMiB: 40960, ReservedMiB: 576, TDPWatts: 400, IdleWatts: 46, MinWatts: 100, SMClock: 1410, SMIdle: 210, MemClock: 1215, MemIdle: 1215, VideoClock: 1275, BAR1MiB: 65536, HBM: true, NVLinkGBps: 300, NVLinks: 12, RowRemap: true, PCIeGen: 4, PCIeGBps: 31.5, ECC: true, migGB: [4]int{5, 10, 20, 40}},
	{Key: "A100-SXM4-80GB", Name: "NVIDIA A100-SXM4-80GB", MemoryMiB: 81920, ReservedMiB: 690, TDPWatts: 400, IdleWatts: 58, MinWatts: 100, SMClock: 1410, SMIdle: 210, MemClock: 1593, MemIdle: 1593, VideoClock: 1275, BAR1MiB: 131072, HBM: true, NVLinkGBps: 300, NVLinks: 12, RowRemap: true, PCIeGen: 4, PCIeGBps: 31.5, ECC: true, migGB: [4]int{10, 20, 40, 80}},
	{Key: "H100", Name: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559, ReservedMiB: 551, TDPWatts: 700, IdleWatts: 67, MinWatts: 200, SMClock: 1980, SMIdle: 345, MemClock: 2619, MemIdle: 2619, VideoClock: 1545, BAR1MiB: 131072, HBM: true, NVLinkGBps: 450, NVLinks: 18, RowRemap: true, PCIeGen: 5, PCIeGBps: 63, ECC: true, migGB: [4]int{10, 20, 40, 80}},
	{Key: "H200", Name: "NVIDIA H200", MemoryMiB: 143771, ReservedMiB: 614, TDPWatts: 700, IdleWatts: 76, MinWatts: 200, SMClock: 1980, SMIdle: 345, MemClock: 3201, MemIdle: 3201, VideoClock: 1545, BAR1MiB: 262144, HBM: true, NVLinkGBps: 450, NVLinks: 18, RowRemap: true, PCIeGen: 5, PCIeGBps: 63, ECC: true, migGB: [4]int{18, 35, 71, 141}},
	{Key: "B200", Name: "NVIDIA B200", MemoryMiB: 183359, ReservedMiB: 717, TDPWatts: 1000, IdleWatts: 140, MinWatts: 200, SMClock: 1965, SMIdle: 120, MemClock: 3996, MemIdle: 3996, VideoClock: 1500, BAR1MiB: 262144, HBM: true, NVLinkGBps: 900, NVLinks: 18, NVLink5: true, RowRemap: true, PCIeGen: 5, PCIeGBps: 63, ECC: true, migGB: [4]int{23, 45, 90, 180}},
	{Key: "RTX4090", Name: "NVIDIA GeForce RTX 4090", MemoryMiB: 24564, ReservedMiB: 340, TDPWatts: 450, IdleWatts: 18, MinWatts: 150, SMClock: 2520, SMIdle: 210, MemClock: 10501, MemIdle: 405, VideoClock: 1950, BAR1MiB: 32768, PCIeGen: 4, PCIeGBps: 31.5, Fans: 2},
	{Key: "GB10", Name: "NVIDIA GB10", MemoryMiB: 122502, TDPWatts: 100, IdleWatts: 4, SMClock: 2418, SMIdle: 208, VideoClock: 1950, PCIeGen: 1, PCIeGBps: 4, Integrated: true},
}

// Models lists the boards that a configuration can name.
func Models() []Model { return slices.Clone(models) }

// findModel looks a board up by its key or its full name.
func findModel(name string) (*Model, error) {
	keys := make([]string, 0, len(models))
	for i := range models {
		if models[i].Key == name || models[i].Name == name {
			return &models[i], nil
		}
		keys = append(keys, models[i].Key)
	}
	return nil, fmt.Errorf("unknown model %q: use one of %s", name, strings.Join(keys, ", "))
}

// instance is a GPU instance of a board in MIG mode.
type instance struct {
	profile   string // such as 1g.5gb
	profileID int    // the driver's id of the profile
	id        int    // GPU instance id, as the driver numbers it
	start     int    // first memory slice of 8
	eighths   int    // memory slices
	slices    int    // compute slices of 7
	memoryMiB int
}

// migShape is a size that a GPU instance can have: compute slices of 7, memory
// in eighths, the driver's id of the profile, the range of ids the driver gives
// to instances of that size, and the memory slices at which they can start, in
// the order in which they are tried.
type migShape struct {
	slices, eighths int
	profileID       int
	firstID, lastID int
	starts          []int
}

var migShapes = []migShape{
	{1, 1, 19, 7, 13, []int{0, 1, 2, 3, 4, 5, 6}},
	{1, 2, 15, 15, 18, []int{0, 2, 4, 6}},
	{2, 2, 14, 3, 5, []int{0, 2, 4}},
	{3, 4, 9, 1, 2, []int{4, 0}},
	{4, 4, 5, 1, 1, []int{0}},
	{7, 8, 0, 0, 0, []int{0}},
}

// MIGProfiles lists the profiles that the board has.
func (m *Model) MIGProfiles() []string { return m.migProfiles() }

// migProfiles lists a board's profiles: "<slices>g.<GB>gb".
func (m *Model) migProfiles() []string {
	if m.migGB[0] == 0 {
		return nil
	}
	out := make([]string, 0, len(migShapes))
	for _, s := range migShapes {
		out = append(out, m.profileName(s))
	}
	return out
}

func (m *Model) profileName(s migShape) string {
	gb := map[int]int{1: m.migGB[0], 2: m.migGB[1], 4: m.migGB[2], 8: m.migGB[3]}[s.eighths]
	return fmt.Sprintf("%dg.%dgb", s.slices, gb)
}

// layout turns a list of profiles into GPU instances with the ids that the
// driver would give them.
func (m *Model) layout(profiles []string) ([]instance, error) {
	if len(profiles) == 0 {
		return nil, nil
	}
	known := m.migProfiles()
	if known == nil {
		return nil, fmt.Errorf("model %s has no MIG: remove the layout", m.Key)
	}
	var out []instance
	var shapes []migShape
	used := map[int]bool{}
	slices, eighths := 0, 0
	for _, p := range profiles {
		shape := -1
		for i, name := range known {
			if name == p {
				shape = i
			}
		}
		if shape < 0 {
			return nil, fmt.Errorf("model %s has no MIG profile %q: use %s", m.Key, p, strings.Join(known, ", "))
		}
		s := migShapes[shape]
		slices, eighths = slices+s.slices, eighths+s.eighths
		id := s.firstID
		for used[id] {
			id++
		}
		if id > s.lastID || slices > 7 || eighths > 8 {
			return nil, fmt.Errorf("MIG layout %v does not fit on one %s (7 compute and 8 memory slices)", profiles, m.Key)
		}
		used[id] = true
		out = append(out, instance{profile: p, profileID: s.profileID, id: id, eighths: s.eighths, slices: s.slices, memoryMiB: (m.MemoryMiB - m.ReservedMiB) * s.eighths / 8})
		shapes = append(shapes, s)
	}
	if !place(out, shapes, 0) {
		return nil, fmt.Errorf("MIG layout %v does not fit on one %s: there is no place for all", profiles, m.Key)
	}
	return out, nil
}

// place finds a place for every instance beside the taken memory slices (a bit
// mask); false is no way to place them.
func place(out []instance, shapes []migShape, taken int) bool {
	if len(out) == 0 {
		return true
	}
	for _, start := range shapes[0].starts {
		mask := (1<<shapes[0].eighths - 1) << start
		if taken&mask == 0 && place(out[1:], shapes[1:], taken|mask) {
			out[0].start = start
			return true
		}
	}
	return false
}
