// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package seendevices lets two receivers of one process that read the same devices, dcgm
// and nvml, emit no series twice: what is known by hw.id of what each of them emits.
package seendevices

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Registry is what receivers of one process know of each other. It is safe for
// concurrent use.
type Registry struct{}

// Process is that of the process.
var Process = &Registry{}

// Emitted notes the series of devices that a receiver emits, for as long as they count.
func (r *Registry) Emitted(md pmetric.Metrics, now time.Time, lasts time.Duration) {}

// Cut takes the points out of md that were noted, and returns how many.
func (r *Registry) Cut(md pmetric.Metrics, now time.Time) int { return 0 }

// CountsXIDs notes that the XIDs of a device are counted one by one, for as long as that
// counts.
func (r *Registry) CountsXIDs(device string, now time.Time, lasts time.Duration) {}

// XIDsCounted reports whether the XIDs of a device are counted one by one.
func (r *Registry) XIDsCounted(device string, now time.Time) bool { return false }
