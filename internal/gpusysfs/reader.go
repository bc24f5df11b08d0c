// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusysfs

import (
	"context"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	refreshEvery = time.Minute      // between two readings
	soonest      = 5 * time.Second  // between two readings that are asked for
	patience     = 10 * time.Second // after which a reading that does not end is reported
)

// Reader reads the sysfs of a host into snapshots. Its methods are safe for concurrent use,
// and none waits for a file except Run.
type Reader struct {
	root string
	fsys fs.FS

	newest  atomic.Pointer[Snapshot]
	asked   chan struct{} // has room for one
	changed chan struct{} // likewise

	mu   sync.Mutex
	next chan struct{} // closed when the snapshot is replaced
}

// New returns the Reader of the sysfs that is mounted at root. Nothing is read before Run, and
// before the first call of Ask or Snapshot.
func New(root string) *Reader { return NewFS(root, os.DirFS(root)) }

// NewFS returns the Reader of a file system. root is what the paths of devices begin with.
func NewFS(root string, fsys fs.FS) *Reader {
	return &Reader{root: root, fsys: fsys, asked: make(chan struct{}, 1), changed: make(chan struct{}, 1), next: make(chan struct{})}
}

// Snapshot is what was read last, nil before the first reading. The first call has it made.
func (r *Reader) Snapshot() *Snapshot {
	s := r.newest.Load()
	if s == nil {
		r.Ask()
	}
	return s
}

// Ask has Run read at once, or five seconds after the last reading began. It does not wait.
func (r *Reader) Ask() {
	select {
	case r.asked <- struct{}{}:
	default:
	}
}

// Since asks, and waits for a snapshot of a time or later, until ctx ends: nil then. At
// most one reading in five seconds is made.
func (r *Reader) Since(ctx context.Context, at time.Time) *Snapshot {
	for {
		r.mu.Lock()
		next := r.next
		r.mu.Unlock()
		if s := r.newest.Load(); s != nil && !s.At.Before(at) {
			return s
		}
		r.Ask()
		select {
		case <-ctx.Done():
			return nil
		case <-next:
		}
	}
}

// Changed is where it is signalled that a snapshot differs from the one before.
func (r *Reader) Changed() <-chan struct{} { return r.changed }

// Run reads when it is first asked to, then every minute and when it is asked to, until ctx
// ends. It does not wait for a file that blocks then.
func (r *Reader) Run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-r.asked:
	}
	for {
		began := time.Now()
		if !r.read(ctx, began) {
			return
		}
		refresh := time.NewTimer(time.Until(began.Add(refreshEvery)))
		select {
		case <-ctx.Done():
			refresh.Stop()
			return
		case <-refresh.C:
			continue
		case <-r.asked:
			refresh.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(began.Add(soonest))):
		}
	}
}

// read replaces the snapshot; false if ctx ended first. One reading is under way at a time: a
// file that blocks delays the next reading, and what is known stays.
func (r *Reader) read(ctx context.Context, began time.Time) bool {
	done := make(chan *Snapshot, 1)
	go func() { done <- Read(r.root, r.fsys, began) }()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case s := <-done:
			r.replace(s)
			return true
		case <-late.C:
			r.replace(r.newest.Load().blocked())
		}
	}
}

func (r *Reader) replace(s *Snapshot) {
	old := r.newest.Swap(s)
	r.mu.Lock()
	close(r.next)
	r.next = make(chan struct{})
	r.mu.Unlock()
	if old.equal(s) {
		return
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}
