// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package storedstate reads what a running collector has in its file_storage.
package storedstate

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"go.etcd.io/bbolt"
)

// Has reports whether a value in one of the files that a pattern of paths names has the
// text: in a database whose transaction has ended, so that a collector that is killed now
// finds it again. It is false while the file is being written.
func Has(t testing.TB, files string, text *regexp.Regexp) (bool, error) {
	t.Helper()
	names, err := filepath.Glob(files)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		again, err2 := os.ReadFile(name)
		if err := errors.Join(err, err2); err != nil || !bytes.Equal(content, again) {
			return false, err
		}
		// The collector has the lock of its file: a copy is read.
		copied := filepath.Join(t.TempDir(), "copy")
		if err := os.WriteFile(copied, content, 0o600); err != nil {
			return false, err
		}
		if found, err := has(copied, text); err != nil || found {
			return found, err
		}
	}
	return false, nil
}

func has(database string, text *regexp.Regexp) (found bool, err error) {
	db, err := bbolt.Open(database, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		return false, err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, bucket *bbolt.Bucket) error {
			return bucket.ForEach(func(_, value []byte) error {
				found = found || text.Match(value)
				return nil
			})
		})
	})
	return found, errors.Join(err, db.Close())
}
