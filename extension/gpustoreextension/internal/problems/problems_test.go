// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

var begin = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return begin.Add(d) }

func TestAProblemBeginsOnceAndEndsOnce(t *testing.T) {
	tr := New()
	full := store.Problem{Part: store.Samples, Reason: store.DiskFull, Detail: "make room"}
	assert.True(t, tr.Raise(Look, begin, full), "found before anything arrived")
	full.Refused = 7
	assert.False(t, tr.Raise(Look, after(time.Second), full))
	assert.Equal(t, []store.Problem{{Part: store.Samples, Reason: store.DiskFull, Since: begin, Last: after(time.Second), Refused: 7, Detail: "make room"}}, tr.All())

	assert.Empty(t, tr.End(after(time.Minute), store.Events, Look, Write), "another part")
	assert.Empty(t, tr.End(after(time.Minute), store.Samples, Write), "found otherwise")
	ended := tr.End(after(time.Minute), store.Samples, Look)
	assert.Len(t, ended, 1)
	assert.Equal(t, after(time.Minute), ended[0].Ended)
	assert.Empty(t, tr.End(after(2*time.Minute), store.Samples, Look), "once")
	assert.Equal(t, ended, tr.All(), "it is known for a while")

	assert.True(t, tr.Raise(Look, after(3*time.Minute), full), "it broke again")
	assert.EqualValues(t, 7, tr.All()[0].Refused)
	full.Reason = store.StorageLimit
	assert.True(t, tr.Raise(Look, after(3*time.Minute), full), "for another reason")
	assert.Len(t, tr.All(), 1)
	tr.End(after(4*time.Minute), store.Samples, Look)
	tr.Settle(after(9 * time.Minute))
	assert.Empty(t, tr.All())
}

func TestAProblemOfContentEndsWhenItDoesNotOccurForAWhile(t *testing.T) {
	tr := New()
	for i, why := range []store.Refusal{store.TooNew, store.SeriesLimit} {
		assert.True(t, tr.Raise(Content, after(time.Duration(i)*time.Minute), store.Problem{Part: store.Samples, Reason: why, Refused: 1}))
	}
	assert.Equal(t, store.SeriesLimit, tr.All()[0].Reason, "the store's own come first")
	assert.Empty(t, tr.Settle(after(quiet-time.Second)))
	assert.Len(t, tr.Settle(after(quiet)), 1)
	assert.Len(t, tr.Settle(after(quiet+time.Minute)), 1)
}
