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
	id        int    // GPU instance id, as the driver numbers it
	slices    int    // compute slices of 7
	memoryMiB int
}

// migShape is a size that a GPU instance can have: compute slices of 7, memory
// in eighths, and the range of ids the driver gives to instances of that size.
type migShape struct {
	slices, eighths int
	firstID, lastID int
}

var migShapes = []migShape{
	{1, 1, 7, 13}, {1, 2, 15, 18}, {2, 2, 3, 5}, {3, 4, 1, 2}, {4, 4, 1, 1}, {7, 8, 0, 0},
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
		out = append(out, instance{profile: p, id: id, slices: s.slices, memoryMiB: (m.MemoryMiB - m.ReservedMiB) * s.eighths / 8})
	}
	return out, nil
}
