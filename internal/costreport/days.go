// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package costreport

import (
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// wanted reports whether a row counts.
func (b *Builder) wanted(r *usage.Row) bool {
	from, to := b.From.Truncate(time.Hour), b.To
	if r.Day {
		from, to = b.wholeDays()
	}
	return (b.From.IsZero() || !r.Hour.Before(from)) && (b.To.IsZero() || r.Hour.Before(to))
}

const day = 24 * time.Hour

// wholeDays returns which days count that the store added up, since their hours are not known
// any more: that of From counts whole and that of To not at all, so that reports of adjacent times
// count each day once. A part of a single day is the whole day.
func (b *Builder) wholeDays() (from, to time.Time) {
	from, to = b.From.Truncate(day), b.To.Truncate(day)
	if from.Equal(to) {
		to = to.Add(day)
	}
	return from, to
}

// cut notes a row of a day of which the report asks for a part.
func (b *Builder) cut(r *usage.Row) {
	end := r.Hour.Add(day)
	if !r.Day || b.From.IsZero() || b.To.IsZero() || !end.After(b.From) || !r.Hour.Before(b.To) {
		return
	}
	if r.Hour.Before(b.From) || end.After(b.To) {
		b.partDays[r.Hour.Unix()] = true
	}
}

// covered returns from when to when the report is: as asked for, but for days that count whole or
// not at all.
func (b *Builder) covered() (from, to time.Time) {
	from, to = b.From, b.To
	first, end := b.wholeDays()
	if b.partDays[first.Unix()] {
		from = first
	}
	if b.partDays[to.Truncate(day).Unix()] {
		to = end
	}
	return from, to
}
