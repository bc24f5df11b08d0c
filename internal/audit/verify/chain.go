// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package verify // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit/verify"

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"golang.org/x/mod/sumdb/note"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// chain checks that the line follows the one before, and where it does not,
// finds out which line is at fault. One line is not enough to decide: if a line
// does not refer to the one before it, either may have been changed, and the
// line after decides which.
func (v *verifier) chain(it *item) error {
	if v.last == nil && v.skip {
		return nil
	}
	if v.last == nil {
		v.first(it)
		return nil
	}
	if it.Seq == v.seq+1 && it.Prev == v.head {
		return nil
	}
	after, err := v.in.peek()
	if err != nil && err != io.EOF {
		return err
	}
	if err == io.EOF || after.err != nil {
		after = nil
	}
	// confirms reports whether the line after refers to a line of that digest
	// and number.
	confirms := func(head codec.Digest, seq uint64) bool {
		return after != nil && after.Prev == head && after.Seq == seq+1
	}
	switch {
	case v.foreign(it):
	case it.Prev == v.head:
		v.broken(it, Edited, "its number should be %d", v.seq+1)
	case it.Seq == v.seq+1:
		v.edited(it, confirms(it.hash, it.Seq), after == nil)
	case it.Seq == v.seq && it.Prev == v.headBefore && it.hash != v.head && confirms(it.hash, it.Seq):
		v.broken(v.last, Inserted, "the line after it has the same number, and the chain goes on from there")
	case it.Seq <= v.seq && confirms(v.head, v.seq):
		v.broken(it, Inserted, "the chain goes on without it")
	case it.Seq <= v.seq:
		v.broken(it, Moved, "number %d is expected here", v.seq+1)
	case after != nil && (after.Seq == v.seq+1 || after.Seq == v.seq+2):
		v.broken(it, Moved, "number %d is expected here", v.seq+1)
	default:
		v.gap(it)
	}
	return nil
}

// first checks the first line that there is.
func (v *verifier) first(it *item) {
	switch {
	case it.Seq == 1 && it.Prev == codec.Digest{}:
		if it.Kind != codec.KindFile && it.Kind != codec.KindTorn {
			v.broken(it, Edited, "a log does not begin so")
		}
		v.known = true
	case it.Seq == 1 || it.Prev == codec.Digest{}:
		v.broken(it, Edited, "only line 1 refers to no line")
	case it.Kind != codec.KindFile && it.Kind != codec.KindTorn:
		v.broken(it, MissingFile, "lines 1 to %d are not there, and it is not the first line of a file", it.Seq-1)
	default: // at the end it is known whether the log records their deletion
		found := *v.report
		v.missing, v.before = it, &found
	}
}

// explains notes a line that records that the files before the first line there is
// were deleted. A process that was killed meanwhile left some of them.
func (v *verifier) explains(it *item, r *codec.RemovedBody) {
	if v.missing == nil || v.covered {
		return
	}
	if last := v.missing.Seq - 1; r.LastSeq > last || r.LastSeq == last && r.Head == v.missing.Prev.String() {
		v.removal = it
	}
}

// removals is reached at the end: only then is it known whether the log itself
// deleted what is not there. Any writer can append such a line: with keys
// it counts if its own writer made a checkpoint behind it, which it does before
// it deletes. That of the next writer covers whatever it finds.
func (v *verifier) removals() {
	if v.removal == nil {
		v.removal = v.refuted
	}
	switch {
	case v.missing == nil || v.covered || v.removal != nil && v.keys == nil:
		return
	case v.removal == nil:
		*v.report = *v.before
		v.broken(v.missing, MissingFile, "lines 1 to %d are not there, and the log has no record that it deleted their files; give all files that there are", v.missing.Seq-1)
	default:
		v.broken(v.removal, ForgedRemoval, "lines 1 to %d are not there; this line states that the log deleted their files, and no checkpoint covers it", v.missing.Seq-1)
	}
}

// order checks what a writer writes when: nothing before its open line, and
// with keys a checkpoint right behind that. One that was killed in between is
// followed by the next writer's lines.
func (v *verifier) order(it *item) {
	switch it.Kind {
	case codec.KindRecord, codec.KindGap, codec.KindRemoved, codec.KindClose:
		if v.known && !v.running {
			v.broken(it, Inserted, "no writer had begun")
		}
		if v.lacks == nil {
			v.lacks = v.awaits
		}
		v.awaits = nil
	}
}

// foreign distinguishes a file of another log from one with a gap before it.
func (v *verifier) foreign(it *item) bool {
	b, ok := it.body.(*codec.FileBody)
	if ok && v.report.Log != "" && b.Log != v.report.Log {
		v.broken(it, ForeignFile, "the file is of the log %s, those before it of %s", b.Log, v.report.Log)
		return true
	}
	return false
}

// edited blames the line or the one before it, which does not match the line.
func (v *verifier) edited(it *item, confirmed, atEnd bool) {
	c, isCheckpoint := it.body.(*codec.CheckpointBody)
	switch {
	case v.signed && it.Kind == codec.KindFile && confirmed:
		v.broken(it, ForeignFile, "the file does not continue the one before it, which ends with a signed line: it was replaced")
	case v.signed:
		v.broken(it, Edited, "it does not refer to the signed line before it")
	case isCheckpoint && c.Head == v.head.String():
		v.broken(it, Edited, "its link is not the head that it signs")
	case confirmed, isCheckpoint && c.Head == it.Prev.String():
		v.broken(v.last, Edited, "the next line refers to a line of another digest")
	case atEnd:
		v.broken(v.last, Edited, "the next line, the last, refers to a line of another digest; one of the two was changed")
	default:
		v.broken(it, Edited, "neither the line before it nor the one after it is linked to it")
	}
}

// gap is reached where lines are missing before a line.
func (v *verifier) gap(it *item) {
	from, to := v.seq+1, it.Seq-1
	header, isFirst := it.body.(*codec.FileBody)
	switch {
	case isFirst && header.File > v.number+1:
		v.broken(it, MissingFile, "lines %d to %d are not there, nor their files; the log deletes only the oldest", from, to)
	default:
		v.broken(it, Missing, "lines %d to %d are not there", from, to)
	}
}

// interrupted looks for the line that closes off what was torn. It returns nil
// after as a report of a break where there is none.
func (v *verifier) interrupted(bad *item) (*item, error) {
	h, hashed := sha256.New(), int64(0)
	for it := bad; ; {
		after, err := v.in.peek()
		if err == io.EOF || err == nil && after.file != bad.file {
			break
		}
		if err != nil {
			return nil, err
		}
		it, err = v.in.next()
		if err != nil {
			return nil, err
		}
		torn, ok := it.body.(*codec.TornBody)
		begins := v.last == nil && !v.skip // whether lines before it are missing is for first to judge
		if !ok || !begins && (it.Seq != v.seq+1 || it.Prev != v.head) {
			continue
		}
		if torn.Bytes != it.offset-bad.offset {
			continue
		}
		// Each byte is hashed once, however many lines claim to close them off.
		from := bad.offset + hashed
		n, err := io.Copy(h, io.NewSectionReader(bad.file.f, from, it.offset-from))
		hashed += n
		v.hashed += n
		if err != nil {
			return nil, err
		}
		if hashed == torn.Bytes && torn.SHA256 == fmt.Sprintf("%x", h.Sum(nil)) {
			return it, nil
		}
	}
	kind := Malformed
	if errors.Is(bad.err, codec.ErrVersion) {
		kind = UnknownVersion
	}
	v.broken(bad, kind, "it %v", bad.err)
	return nil, nil
}

// checkpoint checks what was signed against the chain.
func (v *verifier) checkpoint(it *item, c *codec.CheckpointBody) {
	if c.Count != it.Seq-1 || c.Head != it.Prev.String() {
		v.broken(it, CheckpointMismatch, "it states %d lines and another head than the lines before it have; something since %s was changed and the chain rewritten", c.Count, v.since())
		return
	}
	if v.keys != nil && !v.signature(it, c) {
		return
	}
	v.signed = v.keys != nil
	if v.keys != nil && v.lacks != nil {
		v.broken(v.lacks, Uncheckpointed, "a writer began here, and its checkpoint is not behind it; line %d covers it without having seen the writer of those lines", it.Seq)
		return
	}
	if v.keys != nil && v.report.Uncovered > v.o.MaxUncovered {
		v.broken(it, Uncheckpointed, "since %s there are %d lines, more than the writer leaves without one", v.since(), v.report.Uncovered)
		return
	}
	v.awaits, v.covered = nil, v.removal != nil
	v.report.Checkpoints++
	v.report.Uncovered = 0
	v.report.LastCheckpoint = &Checkpoint{Seq: it.Seq, Time: c.Time, Origin: c.Origin, KeyID: safetext.Strip(c.KeyID, 64)}
}

func (v *verifier) signature(it *item, c *codec.CheckpointBody) bool {
	n, err := note.Open([]byte(c.Note), v.keys)
	var unverified *note.UnverifiedNoteError
	switch {
	case errors.As(err, &unverified):
		v.broken(it, UnknownKey, "it is signed by none of the keys given")
		return false
	case err != nil:
		v.broken(it, BadSignature, "its signature is not good")
		return false
	case len(n.Sigs) != 1 || len(n.UnverifiedSigs) != 0:
		v.broken(it, BadSignature, "it has another number of signatures than one")
		return false
	}
	sig := n.Sigs[0]
	_, err = base64.StdEncoding.Strict().DecodeString(sig.Base64)
	if err != nil || c.Note != n.Text+"\n— "+sig.Name+" "+sig.Base64+"\n" || c.Origin != sig.Name || c.KeyID != checkpoint.KeyID(sig.Hash) {
		v.broken(it, Edited, "its fields are not those of its signature")
		return false
	}
	if n.Text != checkpoint.NoteText(c, v.report.Log, it.Prev) {
		v.broken(it, CheckpointMismatch, "what was signed is not what is here; something since %s was changed and the chain rewritten", v.since())
		return false
	}
	return true
}

// since names the last checkpoint before.
func (v *verifier) since() string {
	if c := v.report.LastCheckpoint; c != nil {
		return fmt.Sprintf("line %d, the checkpoint before it,", c.Seq)
	}
	return "the beginning"
}
