// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package journal keeps the newest entries of a kind: in memory to be read, and
// in files of JSON lines to outlive the process.
package journal // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/journal"

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
)

const (
	// waiting is how many batches may wait for the disk.
	waiting = 256
	// maxLine bounds an entry's line. The makers of entries bound them well
	// below it.
	maxLine = 1 << 20
)

// Options of a journal; all but Standing are needed.
type Options[T any] struct {
	Directory string // must exist
	Name      string // of the files
	// MaxEntries and MaxBytes (of JSON) bound what is kept. On disk there may
	// be a quarter more.
	MaxEntries int
	MaxBytes   int64
	// ID distinguishes entries: one with a known id is not kept again.
	ID func(*T) string
	// Sequence is where an entry keeps its number.
	Sequence func(*T) *uint64
	// Standing is the key of an entry and whether it stands until a later one with
	// that key: what stands is kept beyond those bounds, to a quarter of them. An
	// entry without a key changes nothing. nil: none stands.
	Standing func(*T) (key string, stands bool)
	// Failed is called for every batch that could not be written, with the
	// number of its entries: none where only older ones were tried again.
	Failed func(entries int, err error)
	// Written is called after every batch that was written, and with it
	// everything that could not be before.
	Written func()
	// Damaged is called once, by Open, with the number of lines that could not be read.
	Damaged func(lines int)
}

// Journal is an open journal. Two must not be open on the same files.
type Journal[T any] struct {
	options Options[T]

	mu     sync.RWMutex
	closed bool
	kept   []line[T] // oldest first
	bytes  int64     // of kept
	known  map[string]bool
	standing[T]
	last    uint64 // sequence
	batches chan batch
	excess  [][]byte // lines for which batches had no room

	files   *segments // the writer's own after Open
	backlog [][]byte  // the writer's own: lines that the disk did not take yet
	writer  sync.WaitGroup
}

// line is an entry and the size that it has on disk.
type line[T any] struct {
	entry *T
	size  int
}

// batch is what is written, and synced, together.
type batch struct {
	lines [][]byte
	done  chan<- error // receives the result; nil if no caller waits
}

// ErrClosed is what a closed journal answers.
var ErrClosed = errors.New("the log is closed")

// ErrBusy means that the disk does not keep up. What it is about is written later.
var ErrBusy = errors.New("too much waits to be written")

// Open reads what is there. A last line that was not finished is cut off.
func Open[T any](o Options[T]) (*Journal[T], error) {
	j := &Journal[T]{options: o, known: map[string]bool{}, batches: make(chan batch, waiting), standing: standing[T]{newest: map[string]*T{}}}
	files, err := openSegments(o.Directory, o.Name, max(1, o.MaxEntries/4), max(1, o.MaxBytes/4))
	if err != nil {
		return nil, err
	}
	j.files = files
	files.standing = j.standingLines
	damaged := 0
	var found []line[T]
	err = files.read(func(text []byte) {
		entry := new(T)
		if json.Unmarshal(text, entry) != nil {
			damaged++
			return
		}
		j.last = max(j.last, *o.Sequence(entry))
		found = append(found, line[T]{entry, len(text)})
	})
	if err != nil {
		return nil, errors.Join(err, files.last.Close())
	}
	if damaged > 0 {
		o.Damaged(damaged)
	}
	slices.SortStableFunc(found, func(a, b line[T]) int { // what was in excess stands behind what came later
		return cmp.Compare(*o.Sequence(a.entry), *o.Sequence(b.entry))
	})
	for _, l := range found {
		if !j.known[o.ID(l.entry)] {
			j.keep(l.entry, l.size)
		}
	}
	j.writer.Go(j.write)
	return j, nil
}

// keep appends an entry and lets go of the oldest that do not stand. The caller holds mu.
func (j *Journal[T]) keep(entry *T, size int) {
	j.kept = append(j.kept, line[T]{entry, size})
	j.known[j.options.ID(entry)] = true
	j.bytes += int64(size)
	j.note(entry)
	gone := 0
	for len(j.kept)-gone > 1 && (len(j.kept)-gone > j.options.MaxEntries || j.bytes > j.options.MaxBytes) {
		j.bytes -= int64(j.kept[gone].size)
		j.letGo(j.kept[gone])
		j.kept[gone] = line[T]{}
		gone++
	}
	j.kept = j.kept[gone:]
}

// Append keeps entries, which then belong to the journal. They can be read when
// it returns, and are on disk soon after; it does not wait for that.
func (j *Journal[T]) Append(entries ...*T) error {
	return j.append(entries, nil)
}

// AppendAndWait is Append that returns when the entries are on disk. The error
// of a context that ends before proves nothing about that.
func (j *Journal[T]) AppendAndWait(ctx context.Context, entries ...*T) error {
	done := make(chan error, 1)
	if err := j.append(entries, done); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (j *Journal[T]) append(entries []*T, done chan<- error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return ErrClosed
	}
	var (
		b    = batch{done: done}
		errs error
	)
	for _, entry := range entries {
		if j.known[j.options.ID(entry)] {
			continue
		}
		*j.options.Sequence(entry) = j.last + 1
		text, err := json.Marshal(entry)
		if err == nil && len(text) > maxLine {
			err = fmt.Errorf("an entry of %d bytes is longer than a line may be", len(text))
		}
		if err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		j.last++
		j.keep(entry, len(text)+1)
		b.lines = append(b.lines, append(text, '\n'))
	}
	select {
	case j.batches <- b: // the only senders hold mu, and so does Close
		return errs
	default:
		j.excess = j.bounded(append(j.excess, b.lines...))
		return errors.Join(errs, ErrBusy)
	}
}

// write is the writer's work, until Close.
func (j *Journal[T]) write() {
	for b := range j.batches {
		all, excess := j.waiting(b)
		var lines [][]byte
		for _, b := range all {
			lines = append(lines, b.lines...)
		}
		lines = append(lines, excess...)
		err := j.put(lines)
		for _, b := range all {
			if b.done != nil {
				b.done <- err
			}
		}
	}
	_ = j.put(nil) // the last chance of what the disk did not take
}

// waiting is all that has come in the meantime and shares the sync.
func (j *Journal[T]) waiting(first batch) (all []batch, excess [][]byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	excess, j.excess = j.excess, nil
	all = append(all, first)
	for {
		select {
		case b, ok := <-j.batches: // who sends holds mu, so they are no more than it has room for
			if !ok {
				return all, excess
			}
			all = append(all, b)
		default:
			return all, excess
		}
	}
}

// put writes lines behind those that the disk did not take before.
func (j *Journal[T]) put(lines [][]byte) error {
	all := append(j.backlog, lines...)
	if len(all) == 0 {
		return nil
	}
	if err := j.files.append(all); err != nil {
		j.backlog = j.bounded(all)
		j.options.Failed(len(lines), err)
		return err
	}
	j.backlog = nil
	j.options.Written()
	return nil
}

// bounded leaves out the oldest lines of more than is kept in memory.
func (j *Journal[T]) bounded(lines [][]byte) [][]byte {
	size, from := int64(0), len(lines)
	for from > 0 && len(lines)-from < j.options.MaxEntries && size+int64(len(lines[from-1])) <= j.options.MaxBytes {
		from--
		size += int64(len(lines[from]))
	}
	return slices.Clone(lines[from:])
}

// Retry writes what could not be written before. It does not wait for that.
func (j *Journal[T]) Retry() {
	if err := j.append(nil, nil); err != nil {
		return // closed, or enough waits that will do it
	}
}

// Newest returns up to limit of the newest entries before a sequence (0: of
// all) that match, newest first. They must not be changed. match is called with
// the journal locked; nil matches all.
func (j *Journal[T]) Newest(before uint64, limit int, match func(*T) bool) []*T {
	j.mu.RLock()
	defer j.mu.RUnlock()
	found := []*T{}
	for _, lines := range [][]line[T]{j.kept, j.carried} { // those are older
		for i := len(lines) - 1; i >= 0 && len(found) < limit; i-- {
			entry := lines[i].entry
			if before > 0 && *j.options.Sequence(entry) >= before {
				continue
			}
			if match == nil || match(entry) {
				found = append(found, entry)
			}
		}
	}
	return found
}

// Len is the number of entries.
func (j *Journal[T]) Len() int {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return len(j.kept) + len(j.carried)
}

// Close writes what waits and closes the files. What it keeps can still be read.
func (j *Journal[T]) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	close(j.batches)
	j.mu.Unlock()
	j.writer.Wait()
	return j.files.last.Close()
}
