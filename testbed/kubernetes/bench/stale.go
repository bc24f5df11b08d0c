// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

// staleMark stands in the section of an entry with changes. It links to the table of
// measurements, which names them without a line of its own.
const (
	staleMark  = "[Stale]"
	staleLink  = staleMark + "(#repeat)"
	unrecorded = "measured before its sources were recorded"
)

// changes has, by entry, what changed since its measurement; an entry without changes is
// not in it.
func changes(root string, results map[string]frame.Result) (map[string]string, error) {
	all := map[string]string{}
	tree := frame.NewTree(root)
	for _, e := range entries {
		r, ok := results[e.Name]
		if !ok {
			continue
		}
		if len(r.Sources) == 0 {
			all[e.Name] = unrecorded
			continue
		}
		hashes, err := tree.Hashes(e.Sources)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, source := range e.Sources {
			if r.Sources[source] != hashes[source] {
				names = append(names, source)
			}
		}
		if len(names) > 0 {
			all[e.Name] = strings.Join(names, ", ") + " changed since"
		}
	}
	return all, nil
}

// stale reports whether a figure that the goal is for is of an entry with changes.
func (g goal) stale(changes map[string]string) bool {
	if changes[g.entry] != "" {
		return true
	}
	for _, t := range g.plus {
		if changes[t.entry] != "" {
			return true
		}
	}
	return false
}
