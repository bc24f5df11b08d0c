// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"go.uber.org/zap"
)

// A writer signs what it continues. So it continues only a log of which it knows
// that it is its own: up to the last checkpoint by the signature, up to the head
// kept elsewhere by that, and from there on by the chain, as verify does. What
// does not pass is set aside under another name, for those who have to look into
// it, and a new log begins.
//
// A kill or power cut leaves the head that is kept behind the file, never before
// it: it is continued once its checkpoint is on disk. A file that ends before it
// was cut.

// admit returns the full files to continue from: those given, or none where the
// log was set aside.
func (w *writer) admit(full []numbered) ([]numbered, error) {
	why, err := w.examine(full)
	if err != nil || why == nil {
		return full, err
	}
	w.log = uuid.Must(uuid.NewV7()).String()
	// Before a file is touched: whatever ends the process from here on, the next
	// one finds the old log not to be this one, or the new one to be it.
	w.o.Keep(Head{Log: w.log}, true)
	var names []string
	if w.file != nil {
		err = w.file.Close()
		w.file = nil
	}
	if err == nil {
		names, err = setAside(w.o.Path, full, w.o.Now().UTC().Format("20060102T150405Z"))
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not continued (%w), and cannot be set aside: %w", w.o.Path, why, err)
	}
	w.l.neglect("sync folder", syncFolder(filepath.Dir(w.o.Path)))
	w.l.setAside, w.l.stats.SetAside = why, 1
	w.o.Logger.Error("the audit log does not verify: it was set aside, and a new one begins",
		zap.String("path", w.o.Path), zap.Strings("set_aside", names), zap.String("log", w.log), zap.Error(why))
	return nil, nil
}

// setAside renames all files of the log, the oldest first: a process that is
// killed meanwhile leaves those that did not verify.
func setAside(path string, full []numbered, stamp string) (names []string, err error) {
	ext := filepath.Ext(path)
	base := ""
	for n := 0; ; n++ {
		base = strings.TrimSuffix(path, ext) + ".set-aside-" + stamp
		if n > 0 {
			base += fmt.Sprintf(".%d", n)
		}
		base += ext
		if taken, err := Files(base); err != nil {
			return nil, err
		} else if len(taken) == 0 {
			break
		}
	}
	for _, f := range full {
		to := rotatedName(base, f.n)
		if err := os.Rename(f.path, to); err != nil {
			return nil, err
		}
		names = append(names, to)
	}
	switch err := os.Rename(path, base); {
	case err == nil:
		names = append(names, base)
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	return names, nil
}

// spot is a line that a walk can begin with.
type spot struct {
	file   int
	offset int64
	envelope
}

// landmarks are what a scan of the files finds, from the newest file on.
type landmarks struct {
	checkpoint *spot // the last one
	kept       *spot // the line of which the digest is kept
	newest     *spot // first line of the newest file that has any
}

// scan looks for the landmarks. It reads the newest file alone where that has
// them.
func scan(files []string, kept *Head, signed bool) (*landmarks, error) {
	m := &landmarks{}
	for i := len(files) - 1; i >= 0; i-- {
		if err := m.scanFile(i, files[i], kept); err != nil {
			return nil, err
		}
		if (m.checkpoint != nil || !signed) && (m.kept != nil || kept == nil) && m.newest != nil {
			break
		}
	}
	return m, nil
}

func (m *landmarks) scanFile(i int, path string, kept *Head) error {
	f, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	var start []byte
	if kept != nil {
		start = fmt.Appendf(nil, "%s%d,", linePrefix, kept.Count)
	}
	var checkpoint, first *spot
	in := bufio.NewReaderSize(f, 256<<10)
	for offset := int64(0); ; {
		line, n, err := readLine(in)
		at := offset
		offset += n
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		isKept := kept != nil && bytes.HasPrefix(line, start)
		if first != nil && !isKept && !bytes.Contains(line, []byte(`","kind":"`+kindCheckpoint+`"`)) {
			continue
		}
		e, _, err := parseLine(line)
		if err != nil {
			continue
		}
		here := &spot{file: i, offset: at, envelope: e}
		if first == nil {
			first = here
		}
		if e.kind == kindCheckpoint {
			checkpoint = here
		}
		if isKept && digest(sha256.Sum256(line)).String() == kept.Head {
			m.kept = here
		}
	}
	if m.checkpoint == nil {
		m.checkpoint = checkpoint
	}
	if m.newest == nil {
		m.newest = first
	}
	return nil
}

// examine returns why the files must not be continued; nil if they may be.
func (w *writer) examine(full []numbered) (why, err error) {
	var files []string
	for _, f := range full {
		// What is in the way of a rotation is not one of the log's files.
		if info, err := os.Lstat(f.path); err == nil && info.Mode().IsRegular() {
			files = append(files, f.path)
		}
	}
	if w.file != nil {
		files = append(files, w.o.Path)
	}
	kept := w.o.Kept
	known := kept // with lines
	if kept != nil && kept.Count == 0 {
		known = nil
	}
	keys := w.o.PreviousKeys.with(w.o.CheckpointKey)
	if w.o.CheckpointKey == nil {
		keys = nil
	}
	m, err := scan(files, known, keys != nil)
	switch {
	case err != nil:
		return nil, err
	case m.newest == nil && known != nil:
		return fmt.Errorf("the log %s had %d lines, and none of them is there", kept.Log, kept.Count), nil
	case m.newest == nil:
		return nil, nil
	}
	o := VerifyOptions{PublicKeys: keys}
	if known != nil {
		o.Anchors = []Anchor{{Count: known.Count, Head: known.Head}}
	}
	v, err := w.walk(o, files, m.start(known != nil, keys != nil))
	if err != nil {
		return nil, err
	}
	return v.objection(kept, w.file)
}

// start is where a walk begins: at the earlier one of the checkpoint and the head
// kept; nil is the very beginning, if one of them is due and was not found.
func (m *landmarks) start(kept, signed bool) *spot {
	switch {
	case kept && m.kept == nil || signed && m.checkpoint == nil:
		return nil
	case !signed && !kept:
		return m.newest
	case !signed:
		return m.kept
	case !kept || m.checkpoint.seq < m.kept.seq:
		return m.checkpoint
	default:
		return m.kept
	}
}

func (w *writer) walk(o VerifyOptions, files []string, from *spot) (*verifier, error) {
	if from != nil {
		files = files[from.file:]
	}
	in, err := newReader(func(path string) (*os.File, error) { return openFile(path, os.O_RDONLY) }, files)
	if err != nil {
		return nil, err
	}
	defer in.close()
	v := newVerifier(o, in)
	if from != nil {
		if err := in.from(from.offset); err != nil {
			return nil, err
		}
		v.skip, v.seq, v.head = true, from.seq-1, from.prev
		if _, header, ok := firstLine(in.sources[0].f); ok {
			v.report.Log = header.Log
		}
	}
	return v, v.run()
}

// objection is what a walk found that forbids to continue the log. What follows
// its last line and is none is closed off by the writer, and no objection.
func (v *verifier) objection(kept *Head, current *os.File) (why, err error) {
	b := v.report.Break
	switch {
	case b != nil && b.Kind == Unsigned && v.begins():
		// Killed before its first checkpoint: there is nothing to vouch for.
	case b != nil && (b.Kind == Malformed || b.Kind == UnknownVersion) && current != nil:
		info, err := current.Stat()
		if err != nil {
			return nil, err
		}
		t, err := readTail(current, info.Size())
		if err != nil {
			return nil, err
		}
		if v.fault.file.path != current.Name() || v.fault.offset != t.end {
			return v.cause(), nil
		}
		// The end of the walk; what a whole one finds there is due.
		v.report.Break = nil
		v.end()
		if v.report.Break != nil && (v.report.Break.Kind != Unsigned || !v.begins()) {
			return v.cause(), nil
		}
	case b != nil:
		return v.cause(), nil
	}
	switch {
	case v.keys != nil && v.lacks != nil:
		return fmt.Errorf("line %d: a writer began, and the checkpoint behind it is not there", v.lacks.seq), nil
	case kept != nil && v.report.Log != kept.Log:
		return fmt.Errorf("it is the log %s, and %s is known", v.report.Log, kept.Log), nil
	}
	return nil, nil
}

func (v *verifier) cause() error {
	b := v.report.Break
	return fmt.Errorf("%s, line %d of the log: %s: %s", b.File, b.Seq, b.Kind, b.Detail)
}

// begins reports whether there is nothing yet but the beginning of a log.
func (v *verifier) begins() bool {
	return v.report.FirstSeq == 1 && v.lacks == nil
}
