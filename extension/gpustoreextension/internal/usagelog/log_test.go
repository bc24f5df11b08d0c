// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package usagelog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

var start = time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)

// tested is a log whose reports are kept.
type tested struct {
	*Log
	t       testing.TB
	refused map[store.Refusal]int
	failed  []error
	written int
	damaged int
}

func open(t testing.TB, directory string, change func(*Options)) *tested {
	l := &tested{t: t, refused: map[store.Refusal]int{}}
	o := Options{
		Directory: directory, MaxBytes: 64 << 20, Hours: 35 * 24 * time.Hour, Days: 400 * 24 * time.Hour,
		Refused: func(why store.Refusal, n int, err error) {
			require.Error(t, err)
			l.refused[why] += n
		},
		Failed:  func(_ int, err error) { l.failed = append(l.failed, err) },
		Written: func() { l.written++ },
		Damaged: func(n int) { l.damaged += n },
	}
	if change != nil {
		change(&o)
	}
	var err error
	l.Log, err = Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// add appends rows when the last hour of them has been over for a while.
func (l *tested) add(rows ...usage.Row) {
	now := rows[0].Hour
	for _, r := range rows {
		if r.Hour.After(now) {
			now = r.Hour
		}
	}
	require.NoError(l.t, l.Append(now.Add(90*time.Minute), rows))
}

// all are all rows.
func (l *tested) all() (rows []usage.Row) {
	require.NoError(l.t, l.Query(l.t.Context(), store.UsageQuery{To: start.AddDate(10, 0, 0)}, func(r *usage.Row) { rows = append(rows, *r) }))
	return rows
}

// rowOfService is a row of which the numbers depend on all arguments.
func rowOfService(service string, hour int, revision uint32) usage.Row {
	n := int64(hour+1) * 1000 * int64(revision)
	return usage.Row{
		Key:  usage.Key{Cluster: "c", Model: "H100", State: usage.Held, Namespace: "ns", Service: service, Currency: "USD", RateNano: 2_950_000_000, RatePer: 1, Kind: "list"},
		Hour: start.Add(time.Duration(hour) * time.Hour), Revision: revision,
		Amounts:   usage.Amounts{Time: 4 * n, Used: 3 * n, Idle: 2 * n, Unmeasured: n, Unplaced: n + 1, Energy: [3]int64{n + 2, n + 3, n + 4}, Carbon: n + 5},
		Contested: hour%2 == 0, BoardMetered: hour%3 == 0, Estimated: hour%5 == 0, Marginal: hour%7 == 0,
	}
}

func TestRowsAreReadAsTheyWereKept(t *testing.T) {
	directory := t.TempDir()
	l := open(t, directory, nil)
	var want []usage.Row
	for hour := range 60 { // three pages, of which one is packed
		for _, service := range []string{"a", "b"} {
			r := rowOfService(service, hour, 1)
			if hour%7 == 0 {
				r.Carbon = -1
			}
			want = append(want, r)
			l.add(r)
		}
	}
	assert.Equal(t, want, l.all())
	require.NoError(t, l.Close())
	l = open(t, directory, nil)
	assert.Equal(t, want, l.all(), "after a restart")
	assert.Equal(t, len(want), l.Len())

	var some []usage.Row
	q := store.UsageQuery{From: want[3].Hour, To: want[9].Hour, Match: func(k *usage.Key) bool { return k.Service == "b" }}
	require.NoError(t, l.Query(t.Context(), q, func(r *usage.Row) { some = append(some, *r) }))
	assert.Equal(t, []usage.Row{want[3], want[5], want[7]}, some)
	assert.Equal(t, store.UsageSpan{Kept: true, Oldest: start, Newest: start.Add(59 * time.Hour)}, l.Span())
	l.add(want[len(want)-1])
	assert.Equal(t, start.Add(60*time.Hour+30*time.Minute), l.Span().Arrived)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, l.Query(canceled, q, nil), context.Canceled)
	require.NoError(t, l.Close())
	require.ErrorIs(t, l.Append(start, want), ErrClosed)
	assert.Len(t, l.all(), len(want), "a closed log can be read")
}

// Whatever is repeated and in whatever order it arrives, over restarts, each key and hour
// has the row of its highest revision.
func TestRepeatsAndDisorderChangeNothing(t *testing.T) {
	directory := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	var sent, want []usage.Row
	for hour := range 30 {
		for _, service := range []string{"a", "b", "c"} {
			for revision := range uint32(3) {
				sent = append(sent, rowOfService(service, hour, revision+1))
			}
			want = append(want, sent[len(sent)-1])
		}
	}
	sent = append(sent, sent...)
	random.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
	now := start.Add(32 * time.Hour)
	l := open(t, directory, nil)
	for batch := range slices.Chunk(sent, 50) {
		require.NoError(t, l.Append(now, batch))
		if random.IntN(4) == 0 {
			require.NoError(t, l.Close())
			l = open(t, directory, nil)
		}
	}
	assert.ElementsMatch(t, want, l.all())
	written, size := l.written, l.Bytes()
	require.NoError(t, l.Append(now, sent))
	assert.Equal(t, written, l.written, "what is known is not written again")
	assert.Equal(t, size, l.Bytes())
	assert.Empty(t, l.refused)
}

// A row that is replaced again and again does not fill the disk.
func TestRevisionsDoNotFillTheDisk(t *testing.T) {
	l := open(t, t.TempDir(), nil)
	for revision := range uint32(1500) {
		l.add(rowOfService("a", 0, revision+1))
	}
	assert.Equal(t, []usage.Row{rowOfService("a", 0, 1500)}, l.all())
	assert.Less(t, l.Bytes(), int64(60<<10), "a thousand lines of no use at most")
	l.check()
}

// check compares the sizes of the files with what the log counts.
func (l *tested) check() {
	total := int64(0)
	for _, p := range l.pages {
		info, err := os.Stat(l.path(p.period))
		require.NoError(l.t, err)
		assert.Equal(l.t, p.bytes, info.Size(), p.name())
		total += info.Size()
	}
	assert.Equal(l.t, total, l.Bytes())
}

func TestOpenHours(t *testing.T) {
	directory := t.TempDir()
	l := open(t, directory, nil)
	running := rowOfService("a", 5, 1)
	running.Open, running.Revision = true, 0
	other := running
	other.Service = "b"
	l.add(running, other)
	assert.Equal(t, []usage.Row{running, other}, l.all())
	running.Time += 10
	l.add(running)
	assert.Equal(t, []usage.Row{running, other}, l.all(), "the newest replaces the one before")
	assert.Zero(t, l.written, "it is in memory alone")

	closed := rowOfService("a", 5, 1)
	l.add(closed)
	l.add(running)
	assert.Equal(t, []usage.Row{closed, other}, l.all(), "a closed row replaces it, whatever comes later")

	require.NoError(t, l.Append(start.Add(40*time.Hour), []usage.Row{rowOfService("a", 38, 1)}))
	assert.Len(t, l.all(), 2, "an hour that is never closed goes after a day")
	require.NoError(t, l.Append(start.Add(40*time.Hour), []usage.Row{other}))
	assert.Equal(t, map[store.Refusal]int{store.TooOld: 1}, l.refused)
	require.NoError(t, l.Close())
	assert.Len(t, open(t, directory, nil).all(), 2)

	many := make([]usage.Row, maxOpen+2)
	for i := range many {
		many[i] = running
		many[i].Pod = fmt.Sprint(i)
	}
	l = open(t, t.TempDir(), nil)
	l.add(many...)
	assert.Equal(t, map[store.Refusal]int{store.StorageLimit: 2}, l.refused)
}

// sums are the sums of all amounts by key, whatever the hours.
func sums(rows []usage.Row) map[string][9]int64 {
	all := map[string][9]int64{}
	for _, r := range rows {
		name := r.Service
		if r.Carbon < 0 {
			name += ", carbon not known"
			r.Carbon = 0
		}
		sum := all[name]
		for i, n := range []int64{r.Time, r.Used, r.Idle, r.Unmeasured, r.Unplaced, r.Energy[0], r.Energy[1], r.Energy[2], r.Carbon} {
			sum[i] += n
		}
		all[name] = sum
	}
	return all
}

// A query has the days that it overlaps: whoever asks decides whether a part of one counts.
func TestAPartOfADay(t *testing.T) {
	l := open(t, t.TempDir(), func(o *Options) { o.Hours = 3 * 24 * time.Hour })
	for day := range 3 {
		l.add(rowOfService(fmt.Sprint(day), 24*day+18, 1))
	}
	l.add(rowOfService("x", 24*8, 1)) // the others are days now
	for _, tt := range []struct {
		from, to time.Duration
		want     []string
	}{
		{12 * time.Hour, 36 * time.Hour, []string{"0", "1"}}, {24 * time.Hour, 48 * time.Hour, []string{"1"}}, {25 * time.Hour, 26 * time.Hour, []string{"1"}},
		{24*time.Hour - 1, 24*time.Hour + 1, []string{"0", "1"}}, {191 * time.Hour, 193 * time.Hour, []string{"x"}}, {193 * time.Hour, 194 * time.Hour, nil},
	} {
		var got []string
		require.NoError(t, l.Query(t.Context(), store.UsageQuery{From: start.Add(tt.from), To: start.Add(tt.to)}, func(r *usage.Row) { got = append(got, r.Service) }))
		assert.Equal(t, tt.want, got, tt)
	}
}

func TestOldHoursBecomeDaysWithTheSameSums(t *testing.T) {
	directory := t.TempDir()
	change := func(o *Options) { o.Hours, o.Days = 3*24*time.Hour, 100*24*time.Hour }
	l := open(t, directory, change)
	var sent []usage.Row
	for hour := range 10 * 24 {
		for _, service := range []string{"a", "b"} {
			r := rowOfService(service, hour, 2)
			if hour%5 == 0 {
				r.Carbon = -1
			}
			sent = append(sent, r)
		}
	}
	for batch := range slices.Chunk(sent, 7) {
		l.add(batch...)
	}
	rows := l.all()
	assert.Equal(t, sums(sent), sums(rows))
	days := 0
	for _, r := range rows {
		require.NoError(t, r.Validate())
		if r.Day {
			days++
			assert.Equal(t, r.Hour, r.Hour.Truncate(24*time.Hour))
			assert.True(t, r.Contested && r.BoardMetered)
			assert.Equal(t, r.Carbon < 0, r.Estimated, "every fifth hour")
		}
	}
	assert.Equal(t, 7*2*2, days, "with and without carbon apart")
	l.check()
	require.NoError(t, l.Close())
	l = open(t, directory, change)
	assert.Equal(t, rows, l.all())

	require.NoError(t, l.Append(start.Add(241*time.Hour), []usage.Row{rowOfService("a", 3, 9)}))
	assert.Equal(t, map[store.Refusal]int{store.TooOld: 1}, l.refused, "its day is added up")

	for day := 10; day < 140; day++ {
		l.add(rowOfService("a", 24*day, 1))
	}
	assert.Equal(t, time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC), l.Span().Oldest, "March ended 100 days ago")
	l.check()
}

// The process may end between any two steps of adding up a day.
func TestAddingUpSurvivesAnyEnd(t *testing.T) {
	directory := t.TempDir()
	change := func(o *Options) { o.Hours = 3 * 24 * time.Hour }
	l := open(t, directory, change)
	l.add(rowOfService("a", 1, 1), rowOfService("a", 2, 1))
	hours := filepath.Join(directory, "hours-2026-03-04.log")
	text, err := os.ReadFile(hours)
	require.NoError(t, err)
	l.add(rowOfService("a", 24*5, 1))
	want := l.all()
	require.True(t, want[0].Day)
	require.NoFileExists(t, hours)
	require.NoError(t, l.Close())

	require.NoError(t, os.WriteFile(hours, text, 0o600), "it was not deleted yet")
	month := filepath.Join(directory, "days-2026-03.log")
	require.NoError(t, os.WriteFile(month+".tmp", []byte("half a fi"), 0o600))
	l = open(t, directory, change)
	assert.Equal(t, want, l.all())
	assert.NoFileExists(t, hours)
	assert.NoFileExists(t, month+".tmp")
	require.NoError(t, l.Close())

	require.NoError(t, os.Remove(month), "the month was not written yet")
	require.NoError(t, os.WriteFile(hours, text, 0o600))
	l = open(t, directory, change)
	l.Retry(start.Add(130 * time.Hour))
	assert.Equal(t, want, l.all())
}

// Where there is no room the oldest hours become days, then the oldest months go; what may
// still change stays, and more of it is refused.
func TestWhereThereIsNoRoom(t *testing.T) {
	l := open(t, t.TempDir(), func(o *Options) { o.MaxBytes = 100 << 10 })
	day := func(day int) (rows []usage.Row) {
		for hour := range 24 {
			rows = append(rows, rowOfService("a", 24*day+hour, 1), rowOfService("b", 24*day+hour, 1))
		}
		return rows
	}
	for n := range 100 {
		l.add(day(n)...)
		require.LessOrEqual(t, l.Bytes(), l.options.MaxBytes)
	}
	rows := l.all()
	assert.True(t, rows[0].Day)
	assert.Equal(t, start, rows[0].Hour, "all days are there")
	assert.False(t, rows[len(rows)-72].Day)
	assert.Empty(t, l.refused)

	l.options.MaxBytes = 20 << 10
	for n := range 5 {
		l.add(day(100 + n)...)
	}
	assert.True(t, l.Span().Oldest.After(start))
	for i := range 60 {
		l.add(rowOfService(fmt.Sprint(i), 105*24, 1))
	}
	assert.Positive(t, l.refused[store.StorageLimit])
	assert.Less(t, l.Bytes(), l.options.MaxBytes+1000)
	l.options.MaxBytes = 1 << 20
	l.Retry(start.Add(2600 * time.Hour))
	l.add(rowOfService("new", 105*24, 1))
	assert.Equal(t, "new", l.all()[l.Len()-1].Service, "there is room again")
	assert.Empty(t, l.failed)
	l.check()
}

func TestWhatIsNotTaken(t *testing.T) {
	l := open(t, t.TempDir(), nil)
	now := start.Add(50 * 24 * time.Hour)
	bad, day, early, old := rowOfService("a", 49*24, 1), rowOfService("a", 49*24, 1), rowOfService("a", 50*24+1, 1), rowOfService("a", 0, 1)
	bad.Used, day.Day = bad.Time+1, true
	good := rowOfService("a", 50*24-2, 1)
	require.NoError(t, l.Append(now, []usage.Row{bad, day, early, good, old}))
	assert.Equal(t, []usage.Row{good}, l.all())
	assert.Equal(t, map[store.Refusal]int{store.Invalid: 2, store.TooNew: 1, store.TooOld: 1}, l.refused)
}

// A clock that is ahead by a year deletes nothing.
func TestAClockThatIsAhead(t *testing.T) {
	l := open(t, t.TempDir(), nil)
	l.add(rowOfService("a", 0, 1))
	l.Retry(start.AddDate(3, 0, 0))
	require.NoError(t, l.Append(start.AddDate(3, 0, 0), []usage.Row{rowOfService("a", 1, 1)}))
	assert.Equal(t, []usage.Row{rowOfService("a", 0, 1), rowOfService("a", 1, 1)}, l.all())
}

// A query has whole rows, whatever is appended meanwhile.
func TestQueriesBesideAppends(t *testing.T) {
	l := open(t, t.TempDir(), func(o *Options) { o.Hours = 3 * 24 * time.Hour })
	done := make(chan struct{})
	go func() {
		defer close(done)
		for hour := range 6 * 24 {
			l.add(rowOfService("a", hour, 1), rowOfService("a", max(0, hour-2), 2))
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		for _, r := range l.all() {
			require.NoError(t, r.Validate())
		}
		l.Span()
		l.Len()
	}
	assert.Equal(t, 3+3*24, l.Len(), "three days, and the hours of three")
}
