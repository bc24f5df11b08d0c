// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/logfile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
)

// Defaults of Options.
const (
	DefaultCheckpointInterval = time.Minute
	DefaultMaxBytes           = 100 << 20
	DefaultMaxFiles           = 10

	defaultBufferBytes  = 8 << 20
	defaultWriteWait    = time.Second
	defaultCloseTimeout = 3 * time.Second
)

// Options of a Log. Only Path is required.
type Options struct {
	// Path of the file that is being written. Full ones lie beside it, as
	// audit-000001.jsonl beside audit.jsonl. Its folder must exist.
	Path string
	// CheckpointKey signs checkpoints; without it there are none, and the
	// chain alone does not prevent that it is rewritten.
	CheckpointKey *checkpoint.Key
	// PreviousKeys are public keys of earlier checkpoint keys: a log with its last
	// checkpoint by one of them is continued too.
	PreviousKeys *checkpoint.PublicKeys
	// Kept is what Keep was last given, by an earlier process; nil if that is not
	// known. A log that does not have these lines is not continued.
	Kept *checkpoint.Head
	// Keep, if there is one, takes the head of each checkpoint, to be kept where
	// the files are not. It is called once the checkpoint is on disk. With wait
	// it returns when that is done, or clear that it fails; else at once.
	Keep func(h checkpoint.Head, wait bool)
	// CheckpointInterval is how often a checkpoint is written, and the file
	// made to outlive a power cut, when something was written. 0 is 1m.
	CheckpointInterval time.Duration
	// MaxBytes of a file; 0 is 100 MiB. A full file is renamed.
	MaxBytes int64
	// MaxFiles to keep, the one that is being written included; 0 is 10. The
	// oldest are deleted, which the log itself records.
	MaxFiles int
	// SyncRecords makes every single record outlive a power cut before Write
	// returns, not only the end of the process. It costs an fsync a record.
	SyncRecords bool

	// Logger receives failures and checkpoints.
	Logger *zap.Logger
	// OnStatus is called with an error when records cannot be written or the
	// file cannot be kept as configured, and with nil when all is well again.
	// Calls do not overlap. It must not call the Log.
	OnStatus func(error)
	// Now is the time in lines and checkpoints; nil is time.Now.
	Now func() time.Time

	// For tests: how bytes get into the file, how much may wait, for how long
	// Write and Close wait, and more. Zero is the default.
	write        func(*os.File, []byte) (int, error)
	bufferBytes  int
	writeWait    time.Duration
	closeTimeout time.Duration
	uncovered    int // lines until a checkpoint that is not due yet
}

func (o *Options) setDefaults() {
	setDefault(&o.CheckpointInterval, DefaultCheckpointInterval)
	setDefault(&o.MaxBytes, DefaultMaxBytes)
	setDefault(&o.MaxFiles, DefaultMaxFiles)
	setDefault(&o.bufferBytes, defaultBufferBytes)
	setDefault(&o.writeWait, defaultWriteWait)
	setDefault(&o.closeTimeout, defaultCloseTimeout)
	setDefault(&o.uncovered, checkpoint.MaxUncovered)
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.OnStatus == nil {
		o.OnStatus = func(error) {}
	}
	if o.Keep == nil {
		o.Keep = func(checkpoint.Head, bool) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

func setDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// Log is an audit log on disk. Its methods may be called by several goroutines
// at once.
type Log struct {
	o    Options
	lock *os.File
	w    *writer
	wake chan struct{} // something is queued, or Close was called
	done chan struct{} // the writer has ended

	mu       sync.Mutex       // never held over I/O
	queue    []*entry         // what is not written yet, in order
	bytes    int              // of queue
	failing  error            // why records cannot be written now
	upkeep   map[string]error // what else fails, by operation
	broken   chan struct{}    // closed when failing is set
	closed   bool
	stats    Stats
	endError error // set before done is closed

	statusMu sync.Mutex
	reported error
	logged   logonce.Causes

	setAside error // why the log that Open found is not continued; set before it returns
}

// Stats counts since Open.
type Stats struct {
	Written  int64 // records in the file
	Buffered int64 // records that wait for the file
	Lost     int64 // records that could not be kept
	Failures int64 // operations on the file that failed
	SetAside int64 // logs that did not verify at the start
}

// entry is a record, or a gap, on its way to the file.
type entry struct {
	kind string
	body []byte // of a record, and of a gap once the writer has taken it
	gap  *codec.GapBody
	seq  uint64        // set before done is closed
	done chan struct{} // closed when the line is written; nil for a gap
}

var _ Sink = (*Log)(nil)

// Open opens the log at o.Path, continues its chain, and closes off what an
// interrupted write left at its end. It fails where the configuration is at
// fault: no such folder, no permission, a symbolic link, another writer, a file
// that is no audit log. A full disk is no such fault. A log that does not verify
// is set aside, and a new one begins: SetAside.
func Open(o Options) (*Log, error) {
	o.setDefaults()
	if o.Path == "" {
		return nil, errors.New("no path")
	}
	if o.MaxFiles < 2 || o.MaxBytes < 0 || o.CheckpointInterval < 0 {
		return nil, errors.New("at least 2 files, and no negative limits")
	}
	lockFile, err := logfile.Lock(o.Path)
	if err != nil {
		return nil, err
	}
	l := &Log{
		o:      o,
		lock:   lockFile,
		wake:   make(chan struct{}, 1),
		done:   make(chan struct{}),
		broken: make(chan struct{}),
		logged: logonce.Causes{Most: 64},
		upkeep: map[string]error{},
	}
	if l.w, err = newWriter(l); err != nil {
		return nil, errors.Join(err, lockFile.Close())
	}
	go l.w.run()
	return l, nil
}

// Write is Append for who needs no answer.
func (l *Log) Write(r *Record) { l.Append(r) }

// Append adds a record. It returns once the line has reached the file (so that
// the end of the process cannot undo it) with its sequence number and true.
//
// If the file cannot be written, the record waits in a bounded buffer in memory
// and is written, in order, once that is possible again; Append then returns
// false. It waits for a disk that hangs for 1 s at most, and not at all while
// the log is known to fail. Beyond the buffer's bound records are lost, and a
// gap line will record how many.
func (l *Log) Append(r *Record) (seq uint64, written bool) {
	body, err := json.Marshal(newRecordBody(r))
	if err != nil || len(body) > codec.MaxLine/2 {
		body = nil // no record that this program makes; recorded as a gap
	}
	e := &entry{kind: codec.KindRecord, body: body, done: make(chan struct{})}
	broken := l.enqueue(e)
	if broken == nil {
		return 0, false
	}
	timer := time.NewTimer(l.o.writeWait)
	defer timer.Stop()
	select {
	case <-e.done:
		return e.seq, true
	case <-broken:
		return 0, false
	case <-timer.C:
		l.stalled(e)
		return 0, false
	}
}

// enqueue hands an entry to the writer. It returns what is closed when the
// writer fails, nil if waiting for it is of no use.
func (l *Log) enqueue(e *entry) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.stats.Lost++
		return nil
	}
	if e.body == nil || l.bytes+len(e.body) > l.o.bufferBytes {
		l.lose()
		return nil
	}
	l.queue = append(l.queue, e)
	l.bytes += len(e.body)
	l.stats.Buffered++
	select {
	case l.wake <- struct{}{}:
	default:
	}
	if l.failing != nil {
		return nil
	}
	return l.broken
}

// lose counts a record that cannot be kept, in a gap at the queue's end. The
// caller holds l.mu.
func (l *Log) lose() {
	l.stats.Lost++
	now := codec.UTC(l.o.Now())
	if n := len(l.queue); n > 0 && l.queue[n-1].gap != nil && l.queue[n-1].body == nil {
		gap := l.queue[n-1].gap
		gap.Lost++
		gap.To = now
		return
	}
	l.queue = append(l.queue, &entry{kind: codec.KindGap, gap: &codec.GapBody{Lost: 1, From: now, To: now}})
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// next returns the first entry of the queue, ready to be written, or nil.
func (l *Log) next() *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return nil
	}
	e := l.queue[0]
	if e.gap != nil && e.body == nil {
		e.body, _ = json.Marshal(e.gap) // cannot fail; from now on lose makes a new gap
	}
	return e
}

// written takes the first entry, which is in the file now, out of the queue.
func (l *Log) written(seq uint64) {
	l.mu.Lock()
	e := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	if e.gap == nil {
		l.bytes -= len(e.body)
		l.stats.Written++
		l.stats.Buffered--
	}
	recovered := l.recovers()
	l.mu.Unlock()
	if e.done != nil {
		e.seq = seq
		close(e.done)
	}
	if recovered {
		l.status()
	}
}

// Stats returns what was counted so far.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

// SetAside returns why the log that Open found was not continued; nil if it was, or
// if there was none.
func (l *Log) SetAside() error { return l.setAside }

// Close writes what is buffered and the closing lines, for 3 s at most, and
// lets go of the file. Records that come later are lost and counted. Its error
// returns how many records could not be written.
func (l *Log) Close() error {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	l.mu.Unlock()
	if !first {
		return nil
	}
	close(l.wake)
	timer := time.NewTimer(l.o.closeTimeout + time.Second)
	defer timer.Stop()
	select {
	case <-l.done:
		return errors.Join(l.endError, l.lock.Close())
	case <-timer.C:
		// The disk hangs in a call that cannot be broken off. The lock stays,
		// because that call may still write.
		return fmt.Errorf("the audit file does not answer: %d records were not written", l.Stats().Buffered)
	}
}
