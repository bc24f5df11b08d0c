// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"fmt"
	"strings"
)

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
