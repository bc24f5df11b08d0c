// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package miglayout

import (
	"sync"
	"time"
)

// changing has since when the MIG layout of each node is being changed. A process has one
// node; tests have several.
var changing = struct {
	sync.Mutex
	since map[string]time.Time
}{since: map[string]time.Time{}}

// SetReconfiguring makes known whether the MIG layout of a node is being changed as of now.
func SetReconfiguring(node string, now time.Time, is bool) {
	changing.Lock()
	defer changing.Unlock()
	if _, was := changing.since[node]; is == was {
		return
	}
	if is {
		changing.since[node] = now
	} else {
		delete(changing.since, node)
	}
}

// Reconfiguring is since when the MIG layout of a node is being changed; false where it is
// not, or where that is not known.
func Reconfiguring(node string) (since time.Time, is bool) {
	changing.Lock()
	defer changing.Unlock()
	since, is = changing.since[node]
	return since, is
}
