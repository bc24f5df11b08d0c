// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
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

	chain  chain
	opened bool // the open line is written
	begun  bool // and the checkpoint behind it

	dirty       bool // something was written since the last checkpoint
	uncovered   int  // lines since then
	synced      bool // the last checkpoint outlives a power cut
	retry       time.Duration
	rotateAgain time.Time // not before then, after a rotation that failed
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
		if w.chain.file.Size+int64(len(e.body)) > w.o.MaxBytes {
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
			if err := w.chain.file.Sync(); err != nil {
				w.l.neglect("sync", err)
			}
		}
		w.l.written(w.chain.seq)
	}
}

// begin writes the lines that come before any entry: the file's first, the one
// that closes off a torn write, and the one that records that a writer began.
func (w *writer) begin() error {
	if w.chain.file == nil {
		if err := w.create(); err != nil {
			return err
		}
	}
	if w.chain.torn != nil {
		w.chain.torn.Time = codec.UTC(w.o.Now())
		if err := w.appendBody(codec.KindTorn, w.chain.torn); err != nil {
			return err
		}
		w.o.Logger.Warn("the audit file ended in an interrupted write, which is closed off", zap.String("path", w.o.Path), zap.Int64("bytes", w.chain.torn.Bytes))
		w.chain.torn = nil
	}
	if !w.chain.headed {
		if err := w.appendBody(codec.KindFile, codec.FileBody{Time: codec.UTC(w.o.Now()), Log: w.chain.log, File: w.chain.number}); err != nil {
			return err
		}
		w.chain.headed = true
	}
	if !w.opened {
		if err := w.appendBody(codec.KindOpen, codec.OpenBody{Time: codec.UTC(w.o.Now())}); err != nil {
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

func (w *writer) append(kind string, body []byte) error {
	if err := w.chain.append(kind, body); err != nil {
		return err
	}
	w.uncovered++
	w.dirty = kind != codec.KindCheckpoint
	return nil
}

// checkpoint signs what was written since the last one, and makes it outlive a
// power cut.
func (w *writer) checkpoint() error {
	if !w.dirty || w.chain.file == nil {
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
	count, head := w.chain.seq, w.chain.head
	fields := []zap.Field{zap.String("log", w.chain.log), zap.Uint64("count", count), zap.Stringer("head", head)}
	if key := w.o.CheckpointKey; key != nil {
		c, err := key.Sign(w.chain.log, count, head, w.o.Now())
		if err != nil {
			w.l.neglect("sign", err)
			return nil
		}
		if err := w.appendBody(codec.KindCheckpoint, c); err != nil {
			return err
		}
		fields = append(fields, zap.String("origin", c.Origin), zap.String("key_id", c.KeyID), zap.String("note", c.Note))
	}
	w.dirty, w.uncovered = false, 0
	err := w.chain.file.Sync()
	w.l.neglect("sync", err)
	if w.synced = err == nil; w.synced {
		w.o.Keep(checkpoint.Head{Log: w.chain.log, Count: w.chain.seq, Head: w.chain.head.String()}, false)
	}
	w.o.Logger.Info("audit checkpoint", fields...)
	return nil
}

// stillThere closes a file that was renamed or deleted: records written to it would
// be lost. The chain continues in a new file.
func (w *writer) stillThere() error {
	here, err := w.chain.file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(w.o.Path)
	if err == nil && os.SameFile(here, there) {
		return nil
	}
	w.l.neglect("keep", fmt.Errorf("%s was renamed or deleted; a new file continues its chain", w.o.Path))
	w.l.neglect("keep", w.chain.leave())
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
	if err == nil && w.chain.seq > 0 {
		if err = w.appendBody(codec.KindClose, codec.CloseBody{}); err == nil {
			err = w.checkpoint()
		}
	}
	if left := w.l.Stats().Buffered; left > 0 {
		err = fmt.Errorf("%d audit records were not written: %w", left, err)
	}
	if w.chain.file != nil {
		err = errors.Join(err, w.chain.file.Close())
	}
	w.l.endError = err
}
