// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/logfile"
)

// clockMargin is how far the clock may have been set back between the making of
// a record id and the writing of its record without Find missing it.
const clockMargin = 24 * time.Hour

// Find returns when the deliveries of the records with these ids (UUIDv7) are
// tried again, zero where they ended. A record that the
// log does not hold is not in the map. Find reads the files, newest first, until
// it found all or reached files that are older than the ids. It is meant for the
// start, before the first Write.
func (l *Log) Find(ids []string) map[string]time.Time {
	found := make(map[string]time.Time, len(ids))
	if len(ids) == 0 {
		return found
	}
	wanted := make(map[string]struct{}, len(ids))
	oldest := l.o.Now()
	for _, id := range ids {
		wanted[id] = struct{}{}
		made := time.Time{}
		if u, err := uuid.Parse(id); err == nil && u.Version() == 7 {
			made = time.Unix(u.Time().UnixTime())
		}
		if made.Before(oldest) {
			oldest = made
		}
	}
	files, err := logfile.Files(l.o.Path)
	if err != nil {
		l.neglect("read", err)
		return found
	}
	for _, path := range slices.Backward(files) {
		f, err := logfile.Open(path, os.O_RDONLY)
		if err == nil {
			err = findRecords(f, wanted, found)
			_, header, ok := logfile.FirstLine(f)
			f.Close()
			if len(wanted) == 0 || ok && header.Time.Before(oldest.Add(-clockMargin)) {
				break
			}
		}
		if err != nil {
			l.o.Logger.Error("cannot read an audit file; its attempts may be recorded again as interrupted", zap.String("path", path), zap.Error(err))
		}
	}
	return found
}

var recordStart = []byte(`","kind":"` + codec.KindRecord + `","id":"`)

// findRecords moves the ids of records in r from wanted to found.
func findRecords(r io.Reader, wanted map[string]struct{}, found map[string]time.Time) error {
	in := bufio.NewReaderSize(r, 256<<10)
	for len(wanted) > 0 {
		line, _, err := codec.Read(in)
		if err != nil && err != io.EOF {
			return err
		}
		// Where codec.Append puts it. Only a line that is whole counts: of one
		// that was torn the record is not kept.
		_, rest, _ := bytes.Cut(line, recordStart)
		id, _, _ := bytes.Cut(rest, []byte{'"'})
		if _, is := wanted[string(id)]; is {
			if _, body, err := codec.Parse(line); err == nil {
				if r, ok := body.(*codec.RecordBody); ok && r.ID == string(id) {
					delete(wanted, string(id))
					found[string(id)] = r.NextAttempt
				}
			}
		}
		if err == io.EOF {
			return nil
		}
	}
	return nil
}
