// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package usagelog keeps the rows of the ledger: hours for some weeks, then the sums of
// whole days. They are in memory to be read, about 30 bytes for each, and in files to
// outlive the process. It has no clock and no goroutine.
package usagelog // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/usagelog"

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
	"unique"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

const (
	// changing is how old hours may be that still change: they are not packed, nor added
	// up to days.
	changing = 48 * time.Hour
	// ahead is how far the clock of a sender may be in front of ours.
	ahead = 10 * time.Minute
	// maxOpen bounds the rows of hours that are still running.
	maxOpen = 50_000
	// openFor is how old they become if they are never closed.
	openFor = 24 * time.Hour
	// rowBytes is about what a row takes on disk.
	rowBytes = 96
)

// Options of a log; all are needed.
type Options struct {
	Directory string // is made if it does not exist
	// MaxBytes bounds the files, and so what is in memory.
	MaxBytes int64
	// Hours is how long hours are kept, and Days how long days are.
	Hours, Days time.Duration
	// Refused is called for rows that were not taken, Failed for rows that could not be
	// written, which may be none where older ones were tried again, Written after every
	// write and with it everything that could not be before.
	Refused func(why store.Refusal, rows int, err error)
	Failed  func(rows int, err error)
	Written func()
	// Damaged is called once, by Open, with the number of lines that could not be read.
	Damaged func(lines int)
}

// Log is an open log. Two must not be open on the same directory. It may be used by
// several goroutines.
type Log struct {
	options Options

	disk   sync.Mutex // of all that change pages and files
	closed bool       // under disk
	full   bool       // likewise: MaxBytes is reached, and nothing can be added up or deleted

	mu      sync.RWMutex // of what is read
	pages   map[period]*page
	running map[runningKey]usage.Row
	newest  time.Time // hour of all rows
	arrived time.Time // when rows were last taken
	folded  time.Time // the days before it are added up
}

// runningKey is a row of an hour that is not closed.
type runningKey struct {
	key
	hour int64
}

// ErrClosed is what a closed log answers.
var ErrClosed = errors.New("the log is closed")

// Append keeps rows, and returns when those that are closed are on disk. If the disk
// refuses them they can be read all the same, and Retry writes them. Rows that are known,
// and earlier revisions, change nothing.
func (l *Log) Append(now time.Time, rows []usage.Row) error {
	l.disk.Lock()
	defer l.disk.Unlock()
	if l.closed {
		return ErrClosed
	}
	fresh := 0
	refused := map[store.Refusal]int{}
	why := map[store.Refusal]error{}
	l.mu.Lock()
	for i := range rows {
		took, refusal, err := l.take(now, &rows[i])
		if refusal == "" {
			l.arrived = now
		}
		if took {
			fresh++
		}
		if refusal != "" {
			refused[refusal]++
			why[refusal] = err
		}
	}
	l.mu.Unlock()
	for _, refusal := range slices.Sorted(maps.Keys(refused)) {
		l.options.Refused(refusal, refused[refusal], why[refusal])
	}
	err := l.write(fresh)
	l.tidy(now)
	return err
}

// take keeps a row in memory. took is true if it has to be written.
func (l *Log) take(now time.Time, u *usage.Row) (took bool, refusal store.Refusal, err error) {
	if err := u.Validate(); err != nil {
		return false, store.Invalid, err
	}
	switch {
	case u.Day:
		return false, store.Invalid, errors.New("a row of a whole day: days are added up here")
	case u.Hour.After(now.Add(ahead)):
		return false, store.TooNew, errors.New("its hour has not begun: one of the clocks is wrong")
	}
	k := unique.Make(u.Key)
	day := dayOf(u.Hour)
	p := l.pages[day]
	if u.Open {
		refusal, err := l.run(now, p, k, u)
		return false, refusal, err
	}
	if p == nil && (!day.end().After(l.folded) || !day.end().After(l.reference(now).Add(-l.options.Hours))) {
		return false, store.TooOld, errors.New("its day is added up already, or is older than hours are kept")
	}
	if l.full {
		return false, store.StorageLimit, errors.New("log::max_usage_bytes is reached by hours that may still change: raise it, or have fewer rows (max_rows of gpu_cost)")
	}
	if p == nil {
		p = newPage(day)
		l.pages[day] = p
	}
	p.unpack()
	at := cell{slot: day.slot(u.Hour), key: p.number(k)}
	delete(l.running, runningKey{k, u.Hour.Unix()})
	if known, is := p.cells[at]; is && known.revision >= u.Revision {
		return false, "", nil
	}
	p.put(at, rowOf(u))
	p.dirty[at] = struct{}{}
	l.seen(u.Hour)
	return true, "", nil
}

// run keeps the row of an hour that is still running, which no closed row of the page of
// its day replaced.
func (l *Log) run(now time.Time, p *page, k key, u *usage.Row) (store.Refusal, error) {
	at := runningKey{k, u.Hour.Unix()}
	_, is := l.running[at]
	switch {
	case p != nil && p.has(k, u.Hour):
		return "", nil
	case u.Hour.Before(l.reference(now).Add(-openFor)):
		return store.TooOld, errors.New("its hour is older than hours can run")
	case !is && len(l.running) >= maxOpen:
		return store.StorageLimit, fmt.Errorf("%d rows of hours that are still running are there already: have fewer rows (max_rows of gpu_cost)", maxOpen)
	}
	l.running[at] = *u
	l.seen(u.Hour)
	return "", nil
}

func (l *Log) seen(hour time.Time) {
	if hour.After(l.newest) {
		l.newest = hour
	}
}

// reference is the time that ages are counted from: a clock that is ahead by months must
// not delete months.
func (l *Log) reference(now time.Time) time.Time {
	if end := l.newest.Add(2 * time.Hour); now.After(end) {
		return end
	}
	return now
}

// Retry writes what could not be written before, and lets time pass.
func (l *Log) Retry(now time.Time) {
	l.disk.Lock()
	defer l.disk.Unlock()
	if l.closed {
		return
	}
	_ = l.write(0) // Failed is called
	l.tidy(now)
}

// Query calls each with the rows of hours that begin in [q.From, q.To) and of days that overlap
// it, by time. A row holds during the call.
func (l *Log) Query(ctx context.Context, q store.UsageQuery, each func(*usage.Row)) error {
	l.mu.RLock()
	var views []view
	for _, p := range l.pages {
		if p.end().After(q.From) && p.start.Before(q.To) {
			views = append(views, p.view())
		}
	}
	var open []usage.Row
	for _, u := range l.running {
		if !u.Hour.Before(q.From) && u.Hour.Before(q.To) && (q.Match == nil || q.Match(&u.Key)) {
			open = append(open, u)
		}
	}
	l.mu.RUnlock()
	slices.SortFunc(views, func(a, b view) int { return a.start.Compare(b.start) })
	slices.SortFunc(open, func(a, b usage.Row) int { return cmp.Or(a.Hour.Compare(b.Hour), a.Key.Compare(&b.Key)) })
	for i := range views {
		if err := ctx.Err(); err != nil {
			return err
		}
		views[i].each(q.From, q.To, q.Match, each)
	}
	for i := range open {
		each(&open[i])
	}
	return ctx.Err()
}

// Span is what there are rows of.
func (l *Log) Span() store.UsageSpan {
	l.mu.RLock()
	defer l.mu.RUnlock()
	s := store.UsageSpan{Kept: true, Arrived: l.arrived}
	see := func(from, to time.Time) {
		if s.Oldest.IsZero() || from.Before(s.Oldest) {
			s.Oldest = from
		}
		if to.After(s.Newest) {
			s.Newest = to
		}
	}
	for _, p := range l.pages {
		if p.count > 0 {
			see(p.at(p.oldest), p.at(p.newest))
		}
	}
	for _, u := range l.running {
		see(u.Hour, u.Hour)
	}
	return s
}

// Len is the number of rows, those of hours that are still running included.
func (l *Log) Len() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	n := len(l.running)
	for _, p := range l.pages {
		n += p.count
	}
	return n
}

// Close writes what is not on disk. What is kept can still be read.
func (l *Log) Close() error {
	l.disk.Lock()
	defer l.disk.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	return l.write(0)
}
