// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import (
	"errors"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/logfile"
)

// rotatePause is how long a rotation that failed is not tried again. The file
// grows beyond its limit in the meantime: records come first.
const rotatePause = time.Minute

// rotate puts the full file aside; begin makes the next one. Where that fails
// the old one is written further.
func (w *writer) rotate() {
	if w.chain.lines < 2 || w.o.Now().Before(w.rotateAgain) {
		return
	}
	if err := w.putAside(); err != nil {
		w.rotateAgain = w.o.Now().Add(rotatePause)
		w.l.neglect("rotate", err)
		return
	}
	w.l.neglect("rotate", nil)
	if err := w.begin(); err != nil {
		return // drain meets it again
	}
	w.l.neglect("delete old files", w.removeOld())
}

func (w *writer) putAside() error {
	if err := w.checkpoint(); err != nil {
		return err
	}
	to := logfile.RotatedName(w.o.Path, w.chain.number)
	if _, err := os.Lstat(to); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is in the way", to)
	}
	if err := os.Rename(w.o.Path, to); err != nil {
		return err
	}
	w.l.neglect("close", w.chain.leave()) // the new name is made to last with that of the next file
	return nil
}

// removeOld deletes the oldest files where there are more than MaxFiles. The
// log records it before it is done: what is missing without that line was not
// removed by us.
func (w *writer) removeOld() error {
	full, err := logfile.Rotated(w.o.Path)
	if err != nil {
		return err
	}
	excess := len(full) + 1 - w.o.MaxFiles
	if excess <= 0 {
		return nil
	}
	// The file that becomes the oldest records where the chain stood before it.
	oldest := w.o.Path
	if excess < len(full) {
		oldest = full[excess].Path
	}
	first, _, ok := logfile.HeaderOf(oldest)
	if !ok {
		return fmt.Errorf("the first line of %s is damaged; nothing is deleted so that it can be looked into", oldest)
	}
	last := full[excess-1]
	err = w.appendBody(codec.KindRemoved, codec.RemovedBody{
		Time:        codec.UTC(w.o.Now()),
		ThroughFile: last.N,
		LastSeq:     first.Seq - 1,
		Head:        first.Prev.String(),
	})
	if err == nil {
		err = w.checkpoint() // without which the line counts for nothing
	}
	if err == nil && (w.dirty || !w.synced) {
		err = errors.New("the checkpoint that has to come first is not on disk")
	}
	if err != nil {
		return err
	}
	for _, f := range full[:excess] {
		// The oldest first: what is left has no hole in it.
		if err := os.Remove(f.Path); err != nil {
			return err
		}
	}
	w.o.Logger.Info("deleted old audit files", zap.Int("through_file", last.N), zap.Uint64("last_seq", first.Seq-1))
	return nil
}
