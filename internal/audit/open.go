// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/logfile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/verify"
	"github.com/otelcol-gpu/otelcol-gpu/internal/durable/lines"
)

// newWriter takes over what is there, and finds out where the chain goes on.
func newWriter(l *Log) (*writer, error) {
	o := &l.o
	w := &writer{l: l, o: o, chain: chain{path: o.Path, write: o.write, logger: o.Logger}}
	full, err := logfile.Rotated(w.o.Path)
	if err != nil {
		return nil, err
	}
	f, err := logfile.Open(w.o.Path, os.O_RDWR|os.O_APPEND)
	if err == nil {
		w.chain.file = &lines.File{File: f, Through: o.write}
	} else if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err == nil {
		full, err = w.admit(full)
	}
	w.chain.number = 1
	if len(full) > 0 {
		w.chain.number = full[len(full)-1].N + 1
	}
	if err == nil && w.chain.file != nil {
		err = w.chain.resume(full)
	}
	if err == nil && (w.chain.seq == 0 || w.chain.log == "") {
		err = w.chain.resumeFrom(full)
	}
	if err == nil && w.chain.file == nil {
		// So that a folder that cannot be written is reported at the start.
		if err = w.create(); err != nil && logfile.Passing(err) {
			l.fail(err)
			err = nil
		}
	}
	if err != nil && w.chain.file != nil {
		err = errors.Join(err, w.chain.file.Close())
	}
	if err != nil {
		return nil, err
	}
	if w.chain.log == "" {
		w.chain.log = uuid.Must(uuid.NewV7()).String()
		if kept := w.o.Kept; kept != nil && kept.Count == 0 {
			w.chain.log = kept.Log // begun, and ended before its first line
		}
		w.o.Keep(checkpoint.Head{Log: w.chain.log}, false)
	}
	return w, nil
}

// admit returns the full files to continue from: those given, or none where the
// log was set aside.
func (w *writer) admit(full []lines.Numbered) ([]lines.Numbered, error) {
	found := verify.Found{Kept: w.o.Kept}
	for _, f := range full {
		// What is in the way of a rotation is not one of the log's files.
		if info, err := os.Lstat(f.Path); err == nil && info.Mode().IsRegular() {
			found.Files = append(found.Files, f.Path)
		}
	}
	if w.chain.file != nil {
		found.Files, found.Current = append(found.Files, w.o.Path), w.chain.file.File
	}
	if w.o.CheckpointKey != nil {
		found.Keys = w.o.PreviousKeys.With(w.o.CheckpointKey)
	}
	why, err := verify.Objection(found)
	if err != nil || why == nil {
		return full, err
	}
	w.chain.log = uuid.Must(uuid.NewV7()).String()
	// Before a file is touched: whatever ends the process from here on, the next
	// one finds the old log not to be this one, or the new one to be it.
	w.o.Keep(checkpoint.Head{Log: w.chain.log}, true)
	var names []string
	if w.chain.file != nil {
		err = w.chain.file.Close()
		w.chain.file = nil
	}
	if err == nil {
		names, err = setAside(w.o.Path, full, w.o.Now().UTC().Format("20060102T150405Z"))
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not continued (%w), and cannot be set aside: %w", w.o.Path, why, err)
	}
	w.l.neglect("sync folder", lines.SyncFolder(filepath.Dir(w.o.Path)))
	w.l.setAside, w.l.stats.SetAside = why, 1
	w.o.Logger.Error("the audit log does not verify: it was set aside, and a new one begins",
		zap.String("path", w.o.Path), zap.Strings("set_aside", names), zap.String("log", w.chain.log), zap.Error(why))
	return nil, nil
}

// create makes the file, or resumes the one that is there again.
func (w *writer) create() error {
	fresh, err := w.chain.create()
	if fresh {
		w.l.neglect("sync folder", lines.SyncFolder(filepath.Dir(w.o.Path)))
	}
	return err
}
