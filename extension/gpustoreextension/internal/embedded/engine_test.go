// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

func TestARestartLosesNothing(t *testing.T) {
	directory := t.TempDir()
	w := open(t, directory, nil)
	// Five hours: some of it in blocks, the rest in the write-ahead log.
	for m := range 300 {
		w.now = begin.Add(time.Duration(m) * time.Minute)
		require.Empty(t, w.write(one("m", w.now, float64(m)), one("n", w.now, 1)))
	}
	require.NoError(t, w.db.Compact(t.Context()))
	require.NotEmpty(t, w.db.Blocks())
	require.NoError(t, w.Close())
	require.NoError(t, w.Close(), "closing twice is one too many, and no harm")

	w = open(t, directory, nil)
	w.now = begin.Add(300 * time.Minute)
	assert.Equal(t, 300.0, w.value(`count_over_time(m[301m])`, begin.Add(299*time.Minute)))
	assert.Equal(t, 299.0, w.value(`m`, begin.Add(299*time.Minute)))
	assert.Equal(t, begin.Add(299*time.Minute), w.Info().NewestSample)
	assert.Empty(t, w.write(one("m", w.now, 300)))
	assert.Empty(t, w.logs.FilterLevelExact(zap.WarnLevel).All())
}

func TestRetentionDeletesWhatIsOld(t *testing.T) {
	w := open(t, t.TempDir(), func(o *Options) { o.Retention = time.Hour })
	for m := range 5 * 60 {
		w.now = begin.Add(time.Duration(m) * time.Minute)
		require.Empty(t, w.write(one("m", w.now, float64(m))))
		if m%30 == 29 {
			require.NoError(t, w.db.Compact(t.Context()))
		}
	}
	end := w.now
	assert.Equal(t, 60.0, w.value(`count_over_time(m[1h])`, end), "the retention is kept whole")
	kept := w.value(`count_over_time(m[5h])`, end)
	assert.Less(t, kept, 100.0, "and not much more than that")
	for _, b := range w.db.Blocks() {
		assert.Greater(t, b.MaxTime(), end.Add(-2*time.Hour).UnixMilli())
	}
}

func TestSizeDeletesTheOldestBlocks(t *testing.T) {
	w := open(t, t.TempDir(), func(o *Options) { o.MaxBytes = 1 << 20 })
	random := rand.New(rand.NewPCG(1, 2)) // what compresses badly
	for m := range 24 * 60 {
		w.now = begin.Add(time.Duration(m) * time.Minute)
		var batch []store.Series
		for i := range 200 {
			batch = append(batch, one("m", w.now, random.Float64(), "i", strconv.Itoa(i)))
		}
		require.Empty(t, w.write(batch...), m)
		if m%60 == 59 {
			require.NoError(t, w.db.Compact(t.Context()))
		}
	}
	w.measure()
	// Files are looked at once a block: what came since is above the limit.
	assert.Less(t, w.Stats().Bytes, int64(1<<20+1<<18))
	assert.Equal(t, 200, w.count(`m`, w.now), "the newest stays")
	assert.Zero(t, w.count(`m`, begin.Add(time.Hour)), "the oldest went")
}

// What is not in a block cannot be deleted: then nothing more is taken.
func TestSizeOfWhatCannotBeDeleted(t *testing.T) {
	w := open(t, t.TempDir(), func(o *Options) { o.MaxBytes = 1 << 10 })
	for s := range 2000 {
		w.now = begin.Add(time.Duration(s) * time.Second)
		require.Empty(t, w.write(one("m", w.now, float64(s)*1.1)))
	}
	w.measure()
	assert.Equal(t, map[store.Refusal]int{store.StorageLimit: 1}, w.write(one("m", w.now.Add(time.Second), 1)))
	assert.ErrorContains(t, w.Health(t.Context()), "max_bytes")
	assert.Equal(t, 1, w.count(`m`, w.now), "it can be read")
}

func TestADamagedTailIsRepairedAndReported(t *testing.T) {
	directory := t.TempDir()
	w := open(t, directory, nil)
	for s := range 100 {
		require.Empty(t, w.write(one("m", begin.Add(time.Duration(s)*time.Second), float64(s))))
	}
	require.NoError(t, w.Close())
	segments, err := filepath.Glob(filepath.Join(directory, "wal", "0*"))
	require.NoError(t, err)
	require.NotEmpty(t, segments)
	last := segments[len(segments)-1]
	text, err := os.ReadFile(last)
	require.NoError(t, err)
	require.Greater(t, len(text), 1000)
	require.NoError(t, os.WriteFile(last, append(text[:len(text)-7], 0xff, 0xfe, 0xfd, 1, 2, 3, 4, 5, 6, 7, 8, 9), 0o600))

	w = open(t, directory, nil)
	assert.Len(t, w.logs.FilterMessageSnippet("write-ahead log was damaged").All(), 1)
	got := w.value(`count_over_time(m[10m])`, begin.Add(100*time.Second))
	assert.GreaterOrEqual(t, got, 98.0)
	w.now = begin.Add(time.Hour)
	assert.Empty(t, w.write(one("m", w.now, 1)))
}

func TestADirectoryThatCannotBeUsedIsExplained(t *testing.T) {
	o := options(t.TempDir())
	o.Logger = zap.NewNop()
	first, err := Open(o)
	require.NoError(t, err)
	_, err = Open(o)
	require.ErrorContains(t, err, "in use by another process")
	require.ErrorContains(t, err, o.Directory)
	require.NoError(t, first.Close())
	again, err := Open(o)
	require.NoError(t, err, "closed is free")
	require.NoError(t, again.Close())

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	o.Directory = filepath.Join(file, "below")
	_, err = Open(o)
	require.ErrorContains(t, err, o.Directory)

	// A block that is no block.
	o.Directory = t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(o.Directory, "wal"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(o.Directory, "wal", "00000003"), []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(o.Directory, "wal", "00000001"), []byte("x"), 0o600))
	_, err = Open(o)
	require.ErrorContains(t, err, "move it away")
}

func TestQueriesWaitForTheirTurnAndNotForEver(t *testing.T) {
	w := open(t, t.TempDir(), func(o *Options) { o.ConcurrentQuery, o.QueryTimeout = 1, 50*time.Millisecond })
	w.shared.slots <- struct{}{} // one runs
	_, err := w.Instant(t.Context(), `1`, begin)
	assert.Equal(t, store.Busy, store.KindOf(err))
	assert.ErrorContains(t, err, "try again")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = w.LabelNames(ctx, store.Selection{})
	assert.Equal(t, store.Canceled, store.KindOf(err))
	<-w.shared.slots
	_, err = w.Instant(t.Context(), `1`, begin)
	assert.NoError(t, err)
}

// What takes more than its share of max_samples runs alone among such, and keeps
// its turn until the answer is written; what takes less goes on beside it.
func TestLargeQueriesShareOneBudget(t *testing.T) {
	w := open(t, t.TempDir(), func(o *Options) { o.ConcurrentQuery, o.QueryTimeout, o.MaxSamples = 4, 100*time.Millisecond, 4000 })
	for i := range 95 {
		require.Empty(t, w.write(one(fmt.Sprint("m", i), begin, 1)))
	}
	hour := store.Range{Start: begin, End: begin.Add(time.Hour), Step: 2 * time.Second}
	for name, large := range map[string]func(context.Context) error{
		"samples": func(ctx context.Context) error { _, err := w.Range(ctx, `m1 * 1`, hour); return err },
		"series":  func(ctx context.Context) error { _, err := w.Instant(ctx, `{__name__=~"m.+"}`, begin); return err },
		"labels": func(ctx context.Context) error {
			_, _, err := w.Series(ctx, store.Selection{Matchers: []string{`{__name__=~"m.+"}`}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, hold := store.WithHold(t.Context())
			require.NoError(t, large(ctx))
			assert.Equal(t, store.Busy, store.KindOf(large(t.Context())), "its answer is not written yet")
			assert.Empty(t, w.shared.slots)
			_, err := w.Instant(t.Context(), `m1`, begin)
			assert.NoError(t, err)
			hold.Release()
			assert.NoError(t, large(t.Context()))
			assert.Empty(t, w.alone.slots)
		})
	}
	_, err := w.Range(t.Context(), `{__name__=~"m.+"}`, hour)
	assert.Equal(t, store.TooMuch, store.KindOf(err))
	assert.ErrorContains(t, err, "4000 samples")
	assert.Empty(t, w.alone.slots)
}

func TestAQueryThatTakesTooLongEnds(t *testing.T) {
	w := open(t, t.TempDir(), func(o *Options) { o.QueryTimeout, o.MaxSamples = time.Millisecond, 1<<40 })
	_, err := w.Instant(t.Context(), `sum_over_time((sum_over_time(vector(1)[1d:1s]))[1d:1s])`, begin)
	assert.Equal(t, store.Timeout, store.KindOf(err))
	assert.ErrorContains(t, err, "query::timeout")
}

func TestCloseEndsQueriesFirst(t *testing.T) {
	w := open(t, t.TempDir(), func(o *Options) { o.QueryTimeout, o.MaxSamples = time.Hour, 1<<40 })
	require.Empty(t, w.write(one("m", begin, 1)))
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			_, err := w.Instant(t.Context(), `sum_over_time((sum_over_time(vector(1)[6h:1s]))[6h:1s])`, begin) // longer than any close takes
			assert.Equal(t, store.Unavailable, store.KindOf(err), "%v", err)
		})
	}
	require.Eventually(t, func() bool { return len(w.shared.slots) == 3 }, 10*time.Second, time.Millisecond)
	require.NoError(t, w.Close())
	wg.Wait()
	_, err := w.Instant(t.Context(), `m`, begin)
	assert.Equal(t, store.Unavailable, store.KindOf(err))
	_, err = w.Append(t.Context(), []store.Series{one("m", begin, 1)})
	assert.Equal(t, store.Unavailable, store.KindOf(err))
	_, _, err = w.Series(t.Context(), store.Selection{Matchers: []string{"m"}})
	assert.Equal(t, store.Unavailable, store.KindOf(err))
	assert.Error(t, w.Health(t.Context()))
	assert.True(t, w.Info().NewestSample.IsZero())
}

func TestBlocksAreNoLongerThanTheRetentionAllows(t *testing.T) {
	for retention, want := range map[time.Duration]time.Duration{
		15 * time.Minute: 15 * time.Minute, time.Hour: 15 * time.Minute, 6 * time.Hour: time.Hour, 24 * time.Hour: 2 * time.Hour, 720 * time.Hour: 2 * time.Hour,
	} {
		assert.Equal(t, want, blockDuration(retention), retention)
	}
}

// Lookback is what the engine is configured with, not PromQL's five minutes.
func TestLookback(t *testing.T) {
	w := open(t, t.TempDir(), func(o *Options) { o.Lookback = 12 * time.Minute })
	require.Empty(t, w.write(one("m", begin, 1)))
	assert.Equal(t, 1, w.count(`m`, begin.Add(11*time.Minute)))
	assert.Zero(t, w.count(`m`, begin.Add(13*time.Minute)))
}

func FuzzQuery(f *testing.F) {
	for _, seed := range []string{`up`, `sum by (a) (rate(m[5m]))`, `m{a=~".*"}`, `(((`, `m offset -1y`, `1/0`, `"x"`, `m[1d:1ms]`, `{"a.b"}`} {
		f.Add(seed)
	}
	o := options(f.TempDir())
	o.Logger, o.MaxSamples, o.QueryTimeout = zap.NewNop(), 1000, time.Second
	e, err := Open(o)
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, e.Close()) })
	now := time.Now()
	_, err = e.Append(context.Background(), []store.Series{{
		Labels: labels.FromStrings(model.MetricNameLabel, "m", "a", "b"), Samples: []store.Sample{{Time: now.UnixMilli(), Value: 1}},
	}})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, query string) {
		check := func(value any, err error) {
			var known *store.Error
			if err != nil && !errors.As(err, &known) {
				t.Fatalf("%q: an error of no kind: %v", query, err)
			}
			if err == nil && value == nil {
				t.Fatalf("%q: neither result nor error", query)
			}
		}
		r, err := e.Instant(context.Background(), query, now)
		check(r, err)
		r, err = e.Range(context.Background(), query, store.Range{Start: now.Add(-time.Minute), End: now, Step: 10 * time.Second})
		check(r, err)
		_, _, err = e.Series(context.Background(), store.Selection{Matchers: []string{query}})
		check(fmt.Sprint(err), err)
	})
}
