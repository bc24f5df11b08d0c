// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package kmsg follows the kernel log.
package kmsg

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"
)

// MaxLine is the longest record that is read, in bytes. The kernel makes none that is longer.
const MaxLine = 8192

const (
	retryFirst = time.Second // after the file could not be read; doubling
	retryMost  = time.Minute
	// A pipe in place of the kernel's file has an end, which is looked at again.
	retryEnd = 200 * time.Millisecond
)

// Follower reads /dev/kmsg from its end at the time when it was opened, and from the newest record
// that it has read.
type Follower struct {
	Path string
	// Line gets the text of each record of the driver (with "NVRM: "), without the kernel's
	// prefix.
	Line func(text string)
	// Lost counts records that the kernel overwrote before they were read, and Long those
	// over MaxLine.
	Lost, Long func(n int)
	// State is called when the file is open (nil) and when it cannot be read any more.
	State func(error)

	open   func() (io.ReadCloser, error) // replaced in tests
	known  bool                          // newest is a record's number
	newest uint64                        // of the newest record
	// again is that the file was opened again: records up to newest were read before.
	again bool
}

// Run follows the log until ctx ends. What prevents it is reported to State, and tried again
// after a second, then twice as long, up to a minute. Records that were written meanwhile
// are read then.
func (f *Follower) Run(ctx context.Context) {
	if f.open == nil {
		f.open = f.openFile
	}
	wait := retryFirst
	for ctx.Err() == nil {
		file, err := f.open()
		if err == nil {
			f.State(nil)
			wait, f.again = retryFirst, f.known
			stop := context.AfterFunc(ctx, func() { _ = file.Close() })
			err = f.follow(ctx, file)
			if stop() {
				_ = file.Close()
			}
		}
		if ctx.Err() != nil {
			return
		}
		f.State(err)
		sleep(ctx, wait)
		wait = min(2*wait, retryMost)
	}
}

// errOther is of containers that have a terminal or /dev/null in the place of the log. What
// is read there is no record, and none must not seem to be no XID.
var errOther = errors.New("it is another device than the kernel log")

// openFile opens the file so that closing it ends a reading.
func (f *Follower) openFile() (io.ReadCloser, error) {
	file, err := os.OpenFile(f.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || otherDevice(info) {
		_ = file.Close()
		return nil, errors.Join(err, errOther)
	}
	if !f.known { // old records look like those that were written meanwhile
		_, _ = file.Seek(0, io.SeekEnd) // a pipe has no place to go to
	}
	return file, nil
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// follow reads records until the file cannot be read.
func (f *Follower) follow(ctx context.Context, file io.Reader) error {
	// One read of the kernel's file is one record, and must have room for it: the buffer is
	// empty then, since a record ends with a line feed.
	in := bufio.NewReaderSize(file, 2*MaxLine)
	lost, rest := false, false // rest: of a line that is over the limit
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case err == nil && !rest:
			lost = f.record(line, lost)
		case err == nil:
			rest = false
		case errors.Is(err, bufio.ErrBufferFull):
			if !rest {
				f.Long(1)
			}
			rest = true
		case errors.Is(err, syscall.EPIPE):
			lost, rest = true, false
		case errors.Is(err, syscall.EINVAL): // no room for the record, which is skipped
			f.Long(1)
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, io.EOF) && ctx.Err() == nil:
			sleep(ctx, retryEnd)
		default:
			return err
		}
	}
}

// record takes a line: "priority,number,microseconds,flags;text" and, behind it, lines about
// the record that begin with a space. lost is that records before it were overwritten; it
// reports whether that is still to be counted.
func (f *Follower) record(line []byte, lost bool) bool {
	line = bytes.TrimRight(line, "\n")
	if len(line) == 0 || line[0] == ' ' {
		return lost
	}
	if len(line) > MaxLine {
		f.Long(1)
		return lost
	}
	text, driver := line, bytes.Contains(line, []byte("NVRM: "))
	if prefix, after, found := bytes.Cut(line, []byte(";")); found {
		if number, ok := numberOf(prefix); ok {
			if f.again && number <= f.newest {
				return lost
			}
			f.again = false
			if lost {
				n := 1
				if f.known && number > f.newest {
					n = int(min(number-f.newest-1, 1<<30))
				}
				f.Lost(n)
			}
			text, f.newest, f.known, lost = after, number, true, false
			// A program may write records of its own, and its name into those of the kernel.
			driver = ofKernel(prefix) && bytes.HasPrefix(text, []byte("NVRM: "))
		}
	}
	if lost {
		f.Lost(1)
	}
	if driver {
		f.Line(string(text))
	}
	return false
}

// ofKernel reports whether the priority in a record's prefix is of facility 0, the kernel's.
func ofKernel(prefix []byte) bool {
	priority, _, _ := bytes.Cut(prefix, []byte(","))
	n, err := strconv.ParseUint(string(priority), 10, 32)
	return err == nil && n < 8
}

// numberOf is the record's number in its prefix.
func numberOf(prefix []byte) (uint64, bool) {
	fields := bytes.Split(prefix, []byte(","))
	if len(fields) < 3 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(fields[1]), 10, 64)
	return n, err == nil
}
