// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package partition knows into how many parts the modes of AMD Instinct boards divide one.
package partition

import "strings"

// dies are the models of which CPX makes one partition a die, by a part of their names.
var dies = []struct {
	model string
	count int
}{
	{"MI300A", 6}, {"MI308X", 4}, {"MI300X", 8}, {"MI325X", 8}, {"MI350X", 8}, {"MI355X", 8},
}

// Count is the number of partitions of a board in a mode, such as cpx or cpx_nps4, by the
// name of its model; 0 where it is not known. A board in SPX is one.
func Count(mode, model string) int {
	compute, _, _ := strings.Cut(strings.ToLower(mode), "_")
	switch compute {
	case "spx":
		return 1
	case "dpx":
		return 2
	case "tpx":
		return 3
	case "qpx":
		return 4
	case "cpx":
		name := strings.ToUpper(model)
		for _, m := range dies {
			if strings.Contains(name, m.model) {
				return m.count
			}
		}
	}
	return 0
}

// Mode is the mode that a resource of AMD's device plugin names, such as cpx_nps4 of
// amd.com/cpx_nps4; empty for every other resource.
func Mode(resource string) string {
	mode, found := strings.CutPrefix(resource, "amd.com/")
	if compute, memory, both := strings.Cut(mode, "_"); !found || !both || len(compute) != len("cpx") || !strings.HasSuffix(compute, "px") || !strings.HasPrefix(memory, "nps") {
		return ""
	}
	return mode
}
