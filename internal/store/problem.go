// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package store // import "github.com/otelcol-gpu/otelcol-gpu/internal/store"

import "time"

// Part is what a store keeps.
type Part string

const (
	Samples    Part = "samples"
	Events     Part = "events"
	Deliveries Part = "deliveries"
	UsageRows  Part = "usage_rows"
)

// Problem is why a store did not keep something that arrived, from the first
// refusal on.
type Problem struct {
	Part   Part
	Reason Refusal
	Since  time.Time
	// Last is when something was last refused; zero if nothing has arrived since.
	Last time.Time
	// Ended is when it was over; zero while it lasts.
	Ended time.Time
	// Refused is how many samples or entries were not stored for it.
	Refused int64
	// Detail is the cause and the remedy, for people.
	Detail string
}

// Fault reports whether it is the store's own: its disk or a limit. The others
// are the sender's: its clock or its labels.
func (p *Problem) Fault() bool {
	switch p.Reason {
	case DiskFull, DiskReadOnly, DiskSlow, WriteFailed, StorageLimit, SeriesLimit:
		return true
	default:
		return false
	}
}

// Whole reports whether the store takes nothing at all of that part meanwhile.
func (p *Problem) Whole() bool { return p.Fault() && p.Reason != SeriesLimit && p.Reason != DiskSlow }
