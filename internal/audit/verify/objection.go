// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package verify // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit/verify"

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/logfile"
)

// Found is the log that a writer finds at its start.
type Found struct {
	Files   []string               // in their order, oldest first
	Current *os.File               // the last of Files where it is one that is not full; or nil
	Kept    *checkpoint.Head       // what is known of the log from elsewhere; nil if nothing is
	Keys    *checkpoint.PublicKeys // that may have signed it; nil for a log without checkpoints
}

// Objection returns why the log must not be continued; nil if it may be.
//
// A writer signs what it continues. So it continues only a log of which it knows
// that it is its own: up to the last checkpoint by the signature, up to the head
// kept elsewhere by that, and from there on by the chain, as Files does. What
// does not pass is not continued.
//
// A kill or power cut leaves the head that is kept behind the file, never before
// it: it is continued once its checkpoint is on disk. A file that ends before it
// was cut.
func Objection(l Found) (why, err error) {
	known := l.Kept // with lines
	if known != nil && known.Count == 0 {
		known = nil
	}
	m, err := scan(l.Files, known, l.Keys != nil)
	switch {
	case err != nil:
		return nil, err
	case m.newest == nil && known != nil:
		return fmt.Errorf("the log %s had %d lines, and none of them is there", known.Log, known.Count), nil
	case m.newest == nil:
		return nil, nil
	}
	o := Options{PublicKeys: l.Keys}
	if known != nil {
		o.Anchors = []Anchor{{Count: known.Count, Head: known.Head}}
	}
	v, err := walk(o, l.Files, m.start(known != nil, l.Keys != nil))
	if err != nil {
		return nil, err
	}
	return v.objection(l.Kept, l.Current)
}

// spot is a line that a walk can begin with.
type spot struct {
	file   int
	offset int64
	codec.Envelope
}

// landmarks are what a scan of the files finds, from the newest file on.
type landmarks struct {
	checkpoint *spot // the last one
	kept       *spot // the line of which the digest is kept
	newest     *spot // first line of the newest file that has any
}

// scan looks for the landmarks. It reads the newest file alone where that has
// them.
func scan(files []string, kept *checkpoint.Head, signed bool) (*landmarks, error) {
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

func (m *landmarks) scanFile(i int, path string, kept *checkpoint.Head) error {
	f, err := logfile.Open(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	var start []byte
	if kept != nil {
		start = fmt.Appendf(nil, "%s%d,", codec.Prefix, kept.Count)
	}
	var checkpoint, first *spot
	in := bufio.NewReaderSize(f, 256<<10)
	for offset := int64(0); ; {
		line, n, err := codec.Read(in)
		at := offset
		offset += n
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		isKept := kept != nil && bytes.HasPrefix(line, start)
		if first != nil && !isKept && !bytes.Contains(line, []byte(`","kind":"`+codec.KindCheckpoint+`"`)) {
			continue
		}
		e, _, err := codec.Parse(line)
		if err != nil {
			continue
		}
		here := &spot{file: i, offset: at, Envelope: e}
		if first == nil {
			first = here
		}
		if e.Kind == codec.KindCheckpoint {
			checkpoint = here
		}
		if isKept && codec.Digest(sha256.Sum256(line)).String() == kept.Head {
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
	case !kept || m.checkpoint.Seq < m.kept.Seq:
		return m.checkpoint
	default:
		return m.kept
	}
}

func walk(o Options, files []string, from *spot) (*verifier, error) {
	if from != nil {
		files = files[from.file:]
	}
	in, err := newReader(func(path string) (*os.File, error) { return logfile.Open(path, os.O_RDONLY) }, files)
	if err != nil {
		return nil, err
	}
	defer in.close()
	v := newVerifier(o, in)
	if from != nil {
		if err := in.from(from.offset); err != nil {
			return nil, err
		}
		v.skip, v.seq, v.head = true, from.Seq-1, from.Prev
		if _, header, ok := logfile.FirstLine(in.sources[0].f); ok {
			v.report.Log = header.Log
		}
	}
	return v, v.run()
}

// objection is what a walk found that forbids to continue the log. What follows
// its last line and is no line is closed off by the writer, and no objection.
func (v *verifier) objection(kept *checkpoint.Head, current *os.File) (why, err error) {
	b := v.report.Break
	switch {
	case b != nil && b.Kind == Unsigned && v.begins():
		// Killed before its first checkpoint: there is nothing to vouch for.
	case b != nil && (b.Kind == Malformed || b.Kind == UnknownVersion) && current != nil:
		info, err := current.Stat()
		if err != nil {
			return nil, err
		}
		t, err := logfile.ReadTail(current, info.Size())
		if err != nil {
			return nil, err
		}
		if v.fault.file.path != current.Name() || v.fault.offset != t.End {
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
	if current != nil {
		linked, err := links(current)
		if err != nil {
			return nil, err
		}
		if !linked {
			return errors.New("what follows its last line is a line without line feed, and is not linked to it"), nil
		}
	}
	switch {
	case v.keys != nil && v.lacks != nil:
		return fmt.Errorf("line %d: a writer began, and the checkpoint behind it is not there", v.lacks.Seq), nil
	case kept != nil && v.report.Log != kept.Log:
		return fmt.Errorf("it is the log %s, and %s is known", v.report.Log, kept.Log), nil
	}
	return nil, nil
}

// links reports whether what the file ends with, where that lacks nothing but its line
// feed, is the next line of the log. Closed off by a writer, any other would be a line
// that was edited.
func links(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	t, err := logfile.ReadTail(f, info.Size())
	if err != nil || !t.Good || info.Size()-t.End > codec.MaxLine {
		return err == nil, err
	}
	rest := make([]byte, info.Size()-t.End)
	if _, err := f.ReadAt(rest, t.End); err != nil {
		return false, err
	}
	e, _, err := codec.Parse(rest[bytes.LastIndexByte(rest, '\n')+1:])
	return err != nil || e.Seq == t.Seq+1 && e.Prev == t.Head, nil
}

func (v *verifier) cause() error {
	b := v.report.Break
	return fmt.Errorf("%s, line %d of the log: %s: %s", b.File, b.Seq, b.Kind, b.Detail)
}

// begins reports whether there is nothing yet but the beginning of a log.
func (v *verifier) begins() bool {
	return v.report.FirstSeq == 1 && v.lacks == nil
}
