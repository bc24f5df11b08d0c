// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// within writes series of applications with a share of 4.
func (w *world) within(series ...store.Series) map[store.Refusal]int {
	w.t.Helper()
	a, err := w.AppendWithin(context.Background(), series, 4)
	require.NoError(w.t, err)
	return a.Refused
}

func several(name string, n int, at time.Duration) (all []store.Series) {
	for i := range n {
		all = append(all, one(name, begin.Add(at), 1, "i", strconv.Itoa(i)))
	}
	return all
}

// Applications have their share and no more, before a restart and after it, and the
// series of GPUs have all the rest.
func TestAShareLeavesRoom(t *testing.T) {
	directory := t.TempDir()
	limit := func(o *Options) { o.MaxSeries = 10 }
	tooMany := map[store.Refusal]int{store.ShareLimit: 3}

	w := open(t, directory, limit)
	assert.Equal(t, map[store.Refusal]int{store.ShareLimit: 3}, w.within(several("app", 7, 0)...))
	assert.Equal(t, tooMany, w.within(several("app", 7, time.Second)...), "those that are there go on")
	assert.Empty(t, w.write(several("gpu", 4, 0)...))
	assert.Empty(t, w.write(several("system", 2, 0)...), "of the host: no share, and no name of GPUs")
	assert.Equal(t, 10, int(w.Stats().Series))
	assert.Equal(t, map[store.Refusal]int{store.SeriesLimit: 1}, w.write(one("gpu", begin, 1, "i", "new")))
	require.NoError(t, w.Close())

	w = open(t, directory, func(o *Options) { o.MaxSeries = 12 })
	assert.Equal(t, map[store.Refusal]int{store.ShareLimit: 1}, w.within(one("app", begin, 1, "i", "new")), "the share is still used up")
	assert.Empty(t, w.within(several("app", 3, 2*time.Second)...))
	assert.Empty(t, w.write(several("system", 2, time.Second)...), "these are known to be none of an application now")
	assert.Equal(t, map[store.Refusal]int{store.ShareLimit: 1}, w.within(one("app", begin, 1, "i", "new")))
	assert.Empty(t, w.write(several("gpu", 6, time.Second)...), "and those of GPUs have their room")
	assert.Equal(t, 10, w.count(`{__name__=~"gpu|app"}`, begin.Add(2*time.Second)))
	assert.Len(t, w.series.shared.series, 4)
	require.NoError(t, w.Close())
}

// A series that was refused takes no room of the share.
func TestWhatIsNotStoredTakesNoShare(t *testing.T) {
	w := open(t, t.TempDir(), nil)
	for i := range 9 {
		assert.Equal(t, map[store.Refusal]int{store.TooNew: 1}, w.within(one("late", begin.Add(time.Hour), 1, "i", strconv.Itoa(i))))
	}
	assert.Empty(t, w.within(several("app", 4, 0)...))
	assert.Empty(t, w.series.shared.begun)
}

func TestTheShareIsFreeAgainAfterTheirSeriesAreGone(t *testing.T) {
	w := open(t, t.TempDir(), nil)
	require.Empty(t, w.within(several("app", 4, 0)...))
	w.now = begin.Add(6 * time.Hour)
	require.Empty(t, w.write(one("gpu", begin.Add(6*time.Hour), 1)))
	require.NoError(t, w.db.Head().Truncate(begin.Add(5*time.Hour).UnixMilli()))
	assert.Empty(t, w.series.shared.series)
	assert.Zero(t, w.series.shared.readBack.Load())
}
