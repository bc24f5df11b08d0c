// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/logfile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/durable/lines"
)

// resume takes over the file that is there, behind the full ones.
func (c *chain) resume(full []lines.Numbered) error {
	info, err := c.file.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm() != 0o600 {
		if err := c.file.Chmod(0o600); err != nil {
			c.logger.Warn("the audit file is readable by others than its owner", zap.String("path", c.path), zap.Error(err))
		}
	}
	c.file.Size = info.Size()
	if c.file.Size == 0 {
		return nil
	}
	t, err := logfile.ReadTail(c.file, c.file.Size)
	if err != nil {
		return err
	}
	if !t.Good && len(full) == 0 && !maybeOurs(c.file) {
		return fmt.Errorf("%s is no audit log; choose another path, or move the file away", c.path)
	}
	if !t.Good { // what is there may be the next line of the file before
		if err := c.resumeFrom(full); err != nil {
			return err
		}
	} else {
		c.seq, c.head, c.lines = t.Seq, t.Head, 1
		if _, header, ok := logfile.FirstLine(c.file); ok {
			c.log, c.number, c.headed = header.Log, header.File, true
		}
	}
	if t.End == c.file.Size {
		return nil
	}
	last := make([]byte, 1)
	if _, err := c.file.ReadAt(last, c.file.Size-1); err != nil {
		return err
	}
	c.endless = last[0] != '\n'
	if c.endless && c.completes(t.End) {
		return nil
	}
	h := sha256.New()
	n, err := io.Copy(h, io.NewSectionReader(c.file, t.End, c.file.Size-t.End))
	if err != nil {
		return err
	}
	if c.endless {
		h.Write([]byte{'\n'})
		n++
	}
	c.torn = &codec.TornBody{Bytes: n, SHA256: fmt.Sprintf("%x", h.Sum(nil))}
	return nil
}

// completes takes what is left at the file's end as its last line if only the
// line feed is missing.
func (c *chain) completes(from int64) bool {
	if c.file.Size-from > codec.MaxLine {
		return false
	}
	line := make([]byte, c.file.Size-from)
	if _, err := c.file.ReadAt(line, from); err != nil {
		return false
	}
	e, body, err := codec.Parse(line)
	if err != nil || e.Seq != c.seq+1 || e.Prev != c.head {
		return false
	}
	if header, ok := body.(*codec.FileBody); ok {
		c.log, c.number, c.headed = header.Log, header.File, true
	}
	c.seq, c.head, c.lines = e.Seq, sha256.Sum256(line), max(c.lines, 1)
	return true
}

// maybeOurs reports whether a file without a good line can be the rest of a log
// after an interruption of its very first write.
func maybeOurs(f io.ReaderAt) bool {
	start := make([]byte, len(codec.Prefix))
	n, _ := f.ReadAt(start, 0)
	for i, b := range start[:n] {
		if b != codec.Prefix[i] && b != 0 { // a power cut leaves zeros
			return false
		}
	}
	return true
}

// resumeFrom continues the chain of the full files, newest first: a rotation
// may have been interrupted, before a line of the next file was whole or only
// before the one that names the log.
func (c *chain) resumeFrom(full []lines.Numbered) error {
	for i := len(full) - 1; i >= 0; i-- {
		f, err := logfile.Open(full[i].Path, os.O_RDONLY)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		var t logfile.Tail
		if err == nil {
			t, err = logfile.ReadTail(f, info.Size())
		}
		if _, header, ok := logfile.FirstLine(f); ok && c.log == "" {
			c.log = header.Log
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		if t.Good && c.seq == 0 {
			c.seq, c.head = t.Seq, t.Head
		}
		if c.seq > 0 && c.log != "" {
			return nil
		}
	}
	return nil
}
