// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package pace has the times by which a run lives: a second here is a collection
// interval of 15 s there, and all windows shrink with it.
package pace

import (
	"context"
	"time"
)

const (
	Interval  = time.Second // of collection, poll and evaluation: the shortest that the components take
	Staleness = 6 * time.Second
	Warmup    = 4 * time.Second
	Grace     = 15 * time.Second // reconnect_grace: gRPC's pauses do not shrink
	MaxAge    = 4 * time.Second  // of what gpu.allocation reported
	// Late is what scrape, batch, wire and evaluation take in all.
	Late = 3 * Interval
)

// Pause returns false if ctx ends meanwhile.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
