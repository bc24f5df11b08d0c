// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/uuid"
	"go.uber.org/zap"
)

// newWriter takes over what is there, and finds out where the chain goes on.
func newWriter(l *Log) (*writer, error) {
	w := &writer{l: l, o: &l.o, undo: -1}
	full, err := rotated(w.o.Path)
	if err != nil {
		return nil, err
	}
	w.file, err = openFile(w.o.Path, os.O_RDWR|os.O_APPEND)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err == nil {
		full, err = w.admit(full)
	}
	w.number = 1
	if len(full) > 0 {
		w.number = full[len(full)-1].n + 1
	}
	if err == nil && w.file != nil {
		err = w.resume(full)
	}
	if err == nil && (w.seq == 0 || w.log == "") {
		err = w.resumeFrom(full)
	}
	if err == nil && w.file == nil {
		// So that a folder that cannot be written is reported at the start.
		if err = w.create(); err != nil && passing(err) {
			l.fail(err)
			err = nil
		}
	}
	if err != nil && w.file != nil {
		err = errors.Join(err, w.file.Close())
	}
	if err != nil {
		return nil, err
	}
	if w.log == "" {
		w.log = uuid.Must(uuid.NewV7()).String()
		if kept := w.o.Kept; kept != nil && kept.Count == 0 {
			w.log = kept.Log // begun, and ended before its first line
		}
		w.o.Keep(Head{Log: w.log}, false)
	}
	return w, nil
}

// resume takes over the file that is there, behind the full ones.
func (w *writer) resume(full []numbered) error {
	info, err := w.file.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm() != 0o600 {
		if err := w.file.Chmod(0o600); err != nil {
			w.o.Logger.Warn("the audit file is readable by others than its owner", zap.String("path", w.o.Path), zap.Error(err))
		}
	}
	w.size = info.Size()
	if w.size == 0 {
		return nil
	}
	t, err := readTail(w.file, w.size)
	if err != nil {
		return err
	}
	if !t.good && len(full) == 0 && !maybeOurs(w.file) {
		return fmt.Errorf("%s is no audit log; choose another path, or move the file away", w.o.Path)
	}
	if !t.good { // what is there may be the next line of the file before
		if err := w.resumeFrom(full); err != nil {
			return err
		}
	} else {
		w.seq, w.head, w.lines = t.seq, t.head, 1
		if _, header, ok := firstLine(w.file); ok {
			w.log, w.number, w.headed = header.Log, header.File, true
		}
	}
	if t.end == w.size {
		return nil
	}
	last := make([]byte, 1)
	if _, err := w.file.ReadAt(last, w.size-1); err != nil {
		return err
	}
	w.endless = last[0] != '\n'
	if w.endless && w.completes(t.end) {
		return nil
	}
	h := sha256.New()
	n, err := io.Copy(h, io.NewSectionReader(w.file, t.end, w.size-t.end))
	if err != nil {
		return err
	}
	if w.endless {
		h.Write([]byte{'\n'})
		n++
	}
	w.torn = &tornBody{Bytes: n, SHA256: fmt.Sprintf("%x", h.Sum(nil))}
	return nil
}

// completes takes what is left at the file's end as its last line if only the
// line feed is missing.
func (w *writer) completes(from int64) bool {
	if w.size-from > maxLine {
		return false
	}
	line := make([]byte, w.size-from)
	if _, err := w.file.ReadAt(line, from); err != nil {
		return false
	}
	e, body, err := parseLine(line)
	if err != nil || e.seq != w.seq+1 || e.prev != w.head {
		return false
	}
	if header, ok := body.(*fileBody); ok {
		w.log, w.number, w.headed = header.Log, header.File, true
	}
	w.seq, w.head, w.lines = e.seq, sha256.Sum256(line), max(w.lines, 1)
	return true
}

// maybeOurs reports whether a file without a good line can be the rest of a log
// after an interruption of its very first write.
func maybeOurs(f io.ReaderAt) bool {
	start := make([]byte, len(linePrefix))
	n, _ := f.ReadAt(start, 0)
	for i, b := range start[:n] {
		if b != linePrefix[i] && b != 0 { // a power cut leaves zeros
			return false
		}
	}
	return true
}

// resumeFrom continues the chain of the full files, newest first: a rotation
// may have been interrupted, before a line of the next file was whole or only
// before the one that names the log.
func (w *writer) resumeFrom(full []numbered) error {
	for i := len(full) - 1; i >= 0; i-- {
		f, err := openFile(full[i].path, os.O_RDONLY)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		var t tail
		if err == nil {
			t, err = readTail(f, info.Size())
		}
		if _, header, ok := firstLine(f); ok && w.log == "" {
			w.log = header.Log
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		if t.good && w.seq == 0 {
			w.seq, w.head = t.seq, t.head
		}
		if w.seq > 0 && w.log != "" {
			return nil
		}
	}
	return nil
}
