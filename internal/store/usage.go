// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package store // import "github.com/otelcol-gpu/otelcol-gpu/internal/store"

import (
	"context"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// UsageLog is the bounded, persisted log of the rows of gpu_cost: hours, and later the
// sums of whole days.
type UsageLog interface {
	// AppendUsage returns when the rows that are closed are on disk. A row with a higher
	// revision replaces that of the same key and hour, one with the same or a lower one
	// changes nothing, so a sender in doubt may send them again. Rows of hours that are
	// still running are in memory alone. If the disk refuses rows they can be read all
	// the same until the process ends, as the error states. Rows that cannot be true,
	// or are too old, are counted and cost their neighbours nothing.
	AppendUsage(ctx context.Context, rows []usage.Row) error
	// QueryUsage calls each with the rows of hours that begin in [From, To) and of days that
	// overlap it, by time, each key and hour once. A row holds during the call. Every error is an *Error.
	QueryUsage(ctx context.Context, q UsageQuery, each func(*usage.Row)) error
	// UsageSpan is what there are rows of.
	UsageSpan() UsageSpan
}

// UsageSpan is what a log of usage has.
type UsageSpan struct {
	// Kept is false where the store is configured to keep no usage.
	Kept bool
	// Oldest and Newest are the first and the last hour, or day, that there are rows of;
	// zero without any.
	Oldest, Newest time.Time
	// Arrived is when the newest rows arrived; zero if none have since the start.
	Arrived time.Time
}

// UsageQuery selects rows.
type UsageQuery struct {
	From, To time.Time
	// Match selects further; nil selects all. It must not wait.
	Match func(*usage.Key) bool
}
