// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"

	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/logfile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/durable/lines"
)

// chain is the log as far as it is written: where its last line is, and the file that
// the next one goes to.
type chain struct {
	path   string
	write  func(*os.File, []byte) (int, error)
	logger *zap.Logger

	file    *lines.File // nil: it has to be created
	lines   int         // of the file
	headed  bool        // its first line is written
	number  int         // of the file
	log     string
	seq     uint64
	head    codec.Digest
	torn    *codec.TornBody // has to be closed off before anything else is written
	endless bool            // the file does not end with a line feed
	line    []byte          // reused
}

// create makes the file; its first line is due with the next one. A file that is
// there is resumed again if it ends where the chain stands: its folder was away
// for a while.
func (c *chain) create() (fresh bool, err error) {
	f, err := logfile.Open(c.path, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return false, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() > 0 {
		if t, err := logfile.ReadTail(f, info.Size()); err == nil && t.Good && t.End == info.Size() && t.Seq == c.seq && t.Head == c.head {
			c.file = &lines.File{File: f, Through: c.write}
			if err = c.resume(nil); err != nil {
				c.file = nil
				return false, errors.Join(err, f.Close())
			}
			return false, nil
		}
		err = fmt.Errorf("%s is another file now, which is not written to", c.path)
	}
	if err != nil {
		return false, errors.Join(err, f.Close())
	}
	c.file, c.lines, c.headed = &lines.File{File: f, Through: c.write}, 0, false
	return true, nil
}

// leave closes the file: the chain continues in the next one.
func (c *chain) leave() error {
	err := c.file.Close()
	c.file, c.number = nil, c.number+1
	return err
}

// append writes one line with one write.
func (c *chain) append(kind string, body []byte) error {
	c.line = c.line[:0]
	if c.endless {
		c.line = append(c.line, '\n')
	}
	start := len(c.line)
	c.line = codec.Append(c.line, codec.Envelope{Seq: c.seq + 1, Prev: c.head, Kind: kind}, body)
	if err := c.file.Append(c.line, false); err != nil {
		return err
	}
	c.endless = false
	c.seq++
	c.head = sha256.Sum256(c.line[start : len(c.line)-1])
	c.lines++
	return nil
}
