// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package verify checks the files of an audit log: line after line along the chain,
// the checkpoints by their signatures, and the end by heads that are known from
// elsewhere.
package verify // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit/verify"

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// FindingKind is what Files found. The list is closed.
type FindingKind string

// Breaks: the log is not what was written.
const (
	Malformed          FindingKind = "malformed"           // not a line that a Log writes
	UnknownVersion     FindingKind = "unknown_version"     // of a later version of this program; or changed
	Edited             FindingKind = "edited"              // the line's bytes were changed
	Missing            FindingKind = "missing"             // lines before it are not there
	Inserted           FindingKind = "inserted"            // the line does not belong there
	Moved              FindingKind = "moved"               // the line belongs elsewhere
	MissingFile        FindingKind = "missing_file"        // a file before it is not there, and the log did not delete it
	ForeignFile        FindingKind = "foreign_file"        // the file is of another log, or put in place of another
	BadSignature       FindingKind = "bad_signature"       // a checkpoint's signature is not that of its key
	UnknownKey         FindingKind = "unknown_key"         // a checkpoint is signed by none of the keys given
	CheckpointMismatch FindingKind = "checkpoint_mismatch" // what was signed is not what is there
	Unsigned           FindingKind = "unsigned"            // keys were given, and there is no checkpoint
	Uncheckpointed     FindingKind = "uncheckpointed"      // keys were given, and a checkpoint that the writer makes is not there
	ForgedRemoval      FindingKind = "forged_removal"      // files are not there, and no checkpoint covers the line that records their deletion
	AnchorMismatch     FindingKind = "anchor_mismatch"     // the content of an anchor is not, or no longer, in the log
)

// Facts that the log records itself; they are no breaks.
const (
	InterruptedWrite FindingKind = "interrupted_write" // the process or machine ended in mid-write
	LostRecords      FindingKind = "lost_records"      // could not be kept while the disk failed
	RemovedFiles     FindingKind = "removed_files"     // deleted by max_files
	UncleanEnd       FindingKind = "unclean_end"       // a writer ended without closing the log
	NotClosed        FindingKind = "not_closed"        // the log is in use, its writer was killed, or its end was cut off
)

// Finding is something that Files found, and where.
type Finding struct {
	Kind   FindingKind `json:"kind"`
	File   string      `json:"file"`
	Line   int         `json:"line"` // from 1
	Seq    uint64      `json:"seq"`  // that the line has or, where it has none, should have
	Detail string      `json:"detail"`
}

// Anchor is where the chain stood at some time, as known from elsewhere: the
// Collector's log has every checkpoint.
type Anchor struct {
	Count uint64
	Head  string // hexadecimal
}

// Options are what to check the log against.
type Options struct {
	// PublicKeys of the checkpoints. Without them signatures are not checked.
	PublicKeys *checkpoint.PublicKeys
	// Anchors must all be on the chain.
	Anchors []Anchor
	// MaxUncovered is how many lines without a checkpoint are no break; 0: 100,000.
	MaxUncovered int64
	// Progress, if there is one, is called with the number of lines that were
	// checked, every progressEvery lines.
	Progress func(lines uint64)
}

// progressEvery is a fraction of a second's work.
const progressEvery = 5000

// Report is what Files found out.
type Report struct {
	// Break is the first one; nil if the log is clean. What comes after a break
	// is not looked at, and the figures below count up to it.
	Break *Finding  `json:"break"`
	Facts []Finding `json:"facts"`

	SignaturesChecked bool     `json:"signatures_checked"`
	Log               string   `json:"log"`
	Files             []string `json:"files"` // in their order
	FirstSeq          uint64   `json:"first_seq"`
	LastSeq           uint64   `json:"last_seq"`
	Head              string   `json:"head"`
	Records           int64    `json:"records"`
	LostRecords       uint64   `json:"lost_records"`
	Checkpoints       int64    `json:"checkpoints"`
	// LastCheckpoint covers all before it. Uncovered lines come after it: for
	// them only the unsigned chain speaks.
	LastCheckpoint *Checkpoint `json:"last_checkpoint"`
	Uncovered      int64       `json:"uncovered"`
	// Closed: the last writer ended in good order. That of an earlier end looks
	// alike: only an anchor shows that later lines were cut off.
	Closed bool `json:"closed"`
}

// Checkpoint is one that was found good. Without PublicKeys its signature was
// not looked at.
type Checkpoint struct {
	Seq    uint64    `json:"seq"`
	Time   time.Time `json:"time"`
	Origin string    `json:"origin"`
	KeyID  string    `json:"key_id"`
}

// Clean reports whether there is no break.
func (r *Report) Clean() bool { return r.Break == nil }

// verifier walks along the chain.
type verifier struct {
	o       Options
	in      *reader
	report  *Report
	anchors map[uint64][]string // not met yet, heads by count
	keys    note.Verifiers      // nil without keys
	skip    bool                // what comes before the first line is known
	hashed  int64               // bytes behind a fault that were hashed

	seq        uint64       // of the last line that is good
	head       codec.Digest // of it
	headBefore codec.Digest // of the line before it
	last       *item        // that line; nil at the start
	signed     bool         // the last line is a checkpoint with a good signature
	known      bool         // whether a writer is running is known
	running    bool         // a writer has begun and not ended
	number     int          // of the file that the last line is in
	fault      *item        // where the break is

	missing *item   // the first line, where lines before it are not there
	before  *Report // what was found up to it
	removal *item   // the line that records why they are not
	refuted *item   // one without a checkpoint of its writer behind it
	covered bool    // a checkpoint covers that line
	awaits  *item   // an open line, until the checkpoint behind it
	lacks   *item   // one that had none
}

// maxStretch is how many lines without a checkpoint Files allows: ten times as many
// as a writer makes, for earlier versions kept to the interval alone. Times prove
// nothing: those of records are of attempts, and a disk that fails delays all lines.
const maxStretch = 10 * checkpoint.MaxUncovered

// Files checks the files of one log. It brings them into their order itself.
// Its error is that a file cannot be read; what is wrong with a file that can
// is in the report. It needs little memory, however long the log is.
func Files(o Options, files ...string) (*Report, error) {
	in, err := newReader(os.Open, files)
	if err != nil {
		return nil, err
	}
	defer in.close()
	v := newVerifier(o, in)
	return v.report, v.run()
}

func newVerifier(o Options, in *reader) *verifier {
	if o.MaxUncovered == 0 {
		o.MaxUncovered = maxStretch
	}
	v := &verifier{
		o:       o,
		in:      in,
		anchors: map[uint64][]string{},
		report:  &Report{SignaturesChecked: o.PublicKeys != nil, Files: in.paths(), Facts: []Finding{}},
	}
	if o.PublicKeys != nil {
		v.keys = o.PublicKeys.Verifiers()
	}
	for _, a := range o.Anchors {
		v.anchors[a.Count] = append(v.anchors[a.Count], a.Head)
	}
	return v
}

// run walks up to the first break or the end.
func (v *verifier) run() error {
	for lines := uint64(1); v.report.Break == nil; lines++ {
		if v.o.Progress != nil && lines%progressEvery == 0 {
			v.o.Progress(lines)
		}
		it, err := v.in.next()
		if err == io.EOF {
			v.end()
			break
		}
		if err != nil {
			return err
		}
		if err := v.line(it); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) broken(it *item, kind FindingKind, detail string, args ...any) {
	if v.report.Break == nil {
		v.report.Break, v.fault = v.finding(it, kind, detail, args...), it
	}
}

func (v *verifier) fact(it *item, kind FindingKind, detail string, args ...any) {
	v.report.Facts = append(v.report.Facts, *v.finding(it, kind, detail, args...))
}

func (v *verifier) finding(it *item, kind FindingKind, detail string, args ...any) *Finding {
	seq := it.Seq
	if it.err != nil {
		seq = v.seq + 1
	}
	return &Finding{Kind: kind, File: it.file.path, Line: it.line, Seq: seq, Detail: safetext.Strip(fmt.Sprintf(detail, args...), maxDetail)}
}

// maxDetail bounds what a finding quotes of the log, in which an attacker may have
// written anything.
const maxDetail = 500

// line checks one line; its error is one of reading.
func (v *verifier) line(it *item) error {
	if it.err != nil {
		torn, err := v.interrupted(it)
		if err != nil || torn == nil {
			return err
		}
		it = torn
	}
	if err := v.chain(it); err != nil || v.report.Break != nil {
		return err
	}
	v.headBefore, v.head, v.seq, v.last, v.signed = v.head, it.hash, it.Seq, it, false
	if v.report.FirstSeq == 0 {
		v.report.FirstSeq = it.Seq
	}
	v.report.LastSeq, v.report.Head = it.Seq, it.hash.String()
	v.report.Uncovered++
	v.body(it)
	for _, head := range v.anchors[it.Seq] {
		if head != it.hash.String() {
			v.broken(it, AnchorMismatch, "the anchor has another head for the first %d lines: a line up to this one was changed and the chain rewritten", it.Seq)
		}
	}
	delete(v.anchors, it.Seq)
	return nil
}

// body examines the content of the line.
func (v *verifier) body(it *item) {
	v.order(it)
	switch b := it.body.(type) {
	case *codec.FileBody:
		v.number = b.File
		switch {
		case v.report.Log == "":
			v.report.Log = b.Log
		case v.report.Log != b.Log:
			v.broken(it, ForeignFile, "the file is of the log %s, those before it of %s", b.Log, v.report.Log)
		}
	case *codec.OpenBody:
		if v.running {
			v.fact(it, UncleanEnd, "the writer before this one ended without closing the log")
		}
		v.known, v.running, v.awaits, v.report.Closed = true, true, it, false
		if v.keys != nil && !v.covered && v.removal != nil {
			v.refuted, v.removal = v.removal, nil
		}
	case *codec.CloseBody:
		v.known, v.running, v.report.Closed = true, false, true
	case *codec.RecordBody:
		v.report.Records++
	case *codec.GapBody:
		v.report.LostRecords += b.Lost
		v.fact(it, LostRecords, "%d records between %s and %s could not be kept", b.Lost, b.From.Format(time.RFC3339), b.To.Format(time.RFC3339))
	case *codec.RemovedBody:
		v.fact(it, RemovedFiles, "files up to number %d, with lines up to %d, were deleted because there were too many", b.ThroughFile, b.LastSeq)
		v.explains(it, b)
	case *codec.TornBody:
		v.fact(it, InterruptedWrite, "%d bytes before this line were not written whole", b.Bytes)
	case *codec.CheckpointBody:
		v.checkpoint(it, b)
	}
}

// end is reached when there is no break.
func (v *verifier) end() {
	if v.last == nil {
		v.empty()
		return
	}
	if rest := v.in.rest(); rest != nil {
		v.fact(rest, InterruptedWrite, "the last %d bytes were not written whole; the log is in use, its writer was killed, or its end was cut off", rest.size)
	} else if v.running {
		v.fact(v.last, NotClosed, "the log does not end in good order: it is in use, its writer was killed, or its end was cut off")
	}
	v.removals()
	for count := range v.anchors {
		if count > v.seq {
			v.broken(v.last, AnchorMismatch, "an anchor knows of %d lines: what came after this one was cut off", count)
		} else {
			v.fact(v.last, RemovedFiles, "the anchor at %d lies before the first line that is there", count)
		}
	}
	if v.o.PublicKeys != nil && v.report.Checkpoints == 0 {
		v.broken(v.last, Unsigned, "there is no checkpoint: nothing vouches for these lines")
	}
}

// empty is reached when there is no line at all.
func (v *verifier) empty() {
	first := &item{file: v.in.sources[0], line: 1, err: codec.ErrNotALine}
	switch rest := v.in.rest(); {
	case rest != nil:
		v.broken(rest, Malformed, "there is no whole line")
	case len(v.anchors) > 0:
		v.broken(first, AnchorMismatch, "an anchor knows of lines, and there are none")
	case v.o.PublicKeys != nil:
		v.broken(first, Unsigned, "there is no line, so no checkpoint: nothing vouches for that")
	default:
		v.fact(first, NotClosed, "there is no line: the writer has just begun, its disk is full, or all was cut off")
	}
}
