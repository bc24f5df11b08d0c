// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
)

const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	closeRetry = 250 * time.Millisecond
)

// writer is the one goroutine that touches the file.
type writer struct {
	l *Log
	o *Options

	file    *os.File // nil: it has to be created
	size    int64
	lines   int  // of the file
	headed  bool // its first line is written
	number  int  // of the file
	log     string
	seq     uint64
	head    digest
	opened  bool      // the open line is written
	begun   bool      // and the checkpoint behind it
	torn    *tornBody // has to be closed off before anything else is written
	endless bool      // the file does not end with a line feed
	undo    int64     // size to which a write that failed halfway must be undone; -1: none

	dirty       bool // something was written since the last checkpoint
	uncovered   int  // lines since then
	synced      bool // the last checkpoint outlives a power cut
	retry       time.Duration
	rotateAgain time.Time // not before then, after a rotation that failed
	line        []byte    // reused
}

// create makes the file; its first line is due with the next one. A file that is
// there is resumed again if it ends where the chain stands: its folder was away
// for a while.
func (w *writer) create() error {
	f, err := openFile(w.o.Path, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Size() > 0 {
		if t, err := readTail(f, info.Size()); err == nil && t.good && t.end == info.Size() && t.seq == w.seq && t.head == w.head {
			w.file = f
			if err = w.resume(nil); err != nil {
				w.file = nil
				return errors.Join(err, f.Close())
			}
			return nil
		}
		err = fmt.Errorf("%s is another file now, which is not written to", w.o.Path)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	w.file, w.size, w.lines, w.headed = f, 0, 0, false
	w.l.neglect("sync folder", syncFolder(filepath.Dir(w.o.Path)))
	return nil
}

// run writes what is queued until Close.
func (w *writer) run() {
	defer close(w.l.done)
	ticker := time.NewTicker(w.o.CheckpointInterval)
	defer ticker.Stop()
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case _, open := <-w.l.wake:
			if !open {
				w.finish()
				return
			}
			if w.retry > 0 {
				continue // the retry timer is on its way
			}
		case <-retry.C:
		case <-ticker.C:
			if w.retry > 0 {
				continue
			}
			if err := w.checkpoint(); err != nil {
				w.l.fail(err)
				w.retry = firstRetry
				retry.Reset(w.retry)
				continue
			}
		}
		if err := w.drain(); err != nil {
			w.l.fail(err)
			w.retry = min(max(2*w.retry, firstRetry), lastRetry)
			retry.Reset(w.retry)
		} else {
			w.retry = 0
		}
	}
}

// drain writes the queue. The first error ends it; the entry stays.
func (w *writer) drain() error {
	if err := w.begin(); err != nil {
		return err
	}
	for {
		e := w.l.next()
		if e == nil {
			w.l.well()
			return nil
		}
		if w.size+int64(len(e.body)) > w.o.MaxBytes {
			w.rotate()
		}
		if err := w.begin(); err != nil {
			return err
		}
		if w.uncovered >= w.o.uncovered {
			if err := w.checkpoint(); err != nil {
				return err
			}
		}
		if err := w.append(e.kind, e.body); err != nil {
			return err
		}
		if w.o.SyncRecords {
			if err := w.file.Sync(); err != nil {
				w.l.neglect("sync", err)
			}
		}
		w.l.written(w.seq)
	}
}

// begin writes the lines that come before any entry: the file's first, the one
// that closes off a torn write, and the one that records that a writer began.
func (w *writer) begin() error {
	if w.file == nil {
		if err := w.create(); err != nil {
			return err
		}
	}
	if w.torn != nil {
		w.torn.Time = utc(w.o.Now())
		if err := w.appendBody(kindTorn, w.torn); err != nil {
			return err
		}
		w.o.Logger.Warn("the audit file ended in an interrupted write, which is closed off", zap.String("path", w.o.Path), zap.Int64("bytes", w.torn.Bytes))
		w.torn = nil
	}
	if !w.headed {
		if err := w.appendBody(kindFile, fileBody{Time: utc(w.o.Now()), Log: w.log, File: w.number}); err != nil {
			return err
		}
		w.headed = true
	}
	if !w.opened {
		if err := w.appendBody(kindOpen, openBody{Time: utc(w.o.Now())}); err != nil {
			return err
		}
		w.opened = true
	}
	if !w.begun { // verify takes nothing for a writer's that lacks it
		if err := w.sign(); err != nil {
			return err
		}
		w.begun = true
	}
	return nil
}

func (w *writer) appendBody(kind string, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return w.append(kind, b)
}

// append writes one line with one write.
func (w *writer) append(kind string, body []byte) error {
	if w.undo >= 0 {
		if err := w.file.Truncate(w.undo); err != nil {
			return fmt.Errorf("undo an incomplete write: %w", err)
		}
		w.size, w.undo = w.undo, -1
	}
	w.line = w.line[:0]
	if w.endless {
		w.line = append(w.line, '\n')
	}
	start := len(w.line)
	w.line = appendLine(w.line, envelope{seq: w.seq + 1, prev: w.head, kind: kind}, body)
	n, err := w.o.write(w.file, w.line)
	if err != nil || n != len(w.line) {
		if n > 0 {
			w.undo = w.size
			if w.file.Truncate(w.size) == nil {
				w.undo = -1
			}
		}
		if err == nil {
			err = io.ErrShortWrite
		}
		return err
	}
	w.endless = false
	w.size += int64(n)
	w.seq++
	w.head = sha256.Sum256(w.line[start : n-1])
	w.lines++
	w.uncovered++
	w.dirty = kind != kindCheckpoint
	return nil
}

// checkpoint signs what was written since the last one, and makes it outlive a
// power cut.
func (w *writer) checkpoint() error {
	if !w.dirty || w.file == nil {
		return nil
	}
	if err := w.begin(); err != nil {
		return err
	}
	if w.dirty {
		if err := w.sign(); err != nil {
			return err
		}
	}
	return w.stillThere()
}

// sign writes the checkpoint and hands its head to who keeps it elsewhere: after
// it is on disk, so that what is kept never knows of more than the file has.
func (w *writer) sign() error {
	count, head := w.seq, w.head
	fields := []zap.Field{zap.String("log", w.log), zap.Uint64("count", count), zap.Stringer("head", head)}
	if key := w.o.CheckpointKey; key != nil {
		c, err := key.sign(w.log, count, head, w.o.Now())
		if err != nil {
			w.l.neglect("sign", err)
			return nil
		}
		if err := w.appendBody(kindCheckpoint, c); err != nil {
			return err
		}
		fields = append(fields, zap.String("origin", c.Origin), zap.String("key_id", c.KeyID), zap.String("note", c.Note))
	}
	w.dirty, w.uncovered = false, 0
	err := w.file.Sync()
	w.l.neglect("sync", err)
	if w.synced = err == nil; w.synced {
		w.o.Keep(Head{Log: w.log, Count: w.seq, Head: w.head.String()}, false)
	}
	w.o.Logger.Info("audit checkpoint", fields...)
	return nil
}

// stillThere closes a file that was renamed or deleted: records written to it would
// be lost. The chain continues in a new file.
func (w *writer) stillThere() error {
	here, err := w.file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(w.o.Path)
	if err == nil && os.SameFile(here, there) {
		return nil
	}
	w.l.neglect("keep", fmt.Errorf("%s was renamed or deleted; a new file continues its chain", w.o.Path))
	w.l.neglect("keep", w.file.Close())
	w.file, w.number = nil, w.number+1
	return w.begin()
}

// finish writes what is left and the closing lines.
func (w *writer) finish() {
	deadline := time.Now().Add(w.o.closeTimeout)
	err := w.drain()
	for err != nil && time.Now().Before(deadline) {
		time.Sleep(closeRetry)
		err = w.drain()
	}
	if err == nil && w.seq > 0 {
		if err = w.appendBody(kindClose, closeBody{}); err == nil {
			err = w.checkpoint()
		}
	}
	if left := w.l.Stats().Buffered; left > 0 {
		err = fmt.Errorf("%d audit records were not written: %w", left, err)
	}
	if w.file != nil {
		err = errors.Join(err, w.file.Close())
	}
	w.l.endError = err
}
