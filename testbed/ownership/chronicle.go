// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"maps"
	"sync"
	"time"
)

// Reading is a value of each physical device by hw.id.
type Reading map[string]float64

// Chronicle keeps what the devices of nodes really did.
type Chronicle struct {
	mu    sync.Mutex
	nodes map[string][]entry // in the order of time
}

// entry is what was read from the first time to the last.
type entry struct {
	from, to time.Time
	readings map[string]Reading // by metric
}

// Note records what was true of a node at a time.
func (c *Chronicle) Note(node string, at time.Time, readings map[string]Reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes == nil {
		c.nodes = map[string][]entry{}
	}
	entries := c.nodes[node]
	if n := len(entries); n > 0 && maps.EqualFunc(entries[n-1].readings, readings, maps.Equal) {
		entries[n-1].to = at
		return
	}
	c.nodes[node] = append(entries, entry{at, at, readings})
}

// Between are the different states of a node's devices that were read between
// two times.
func (c *Chronicle) Between(node string, from, to time.Time) (out []map[string]Reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entries := c.nodes[node]
	for i := len(entries) - 1; i >= 0 && !entries[i].to.Before(from); i-- {
		if !entries[i].from.After(to) {
			out = append(out, entries[i].readings)
		}
	}
	return out
}
