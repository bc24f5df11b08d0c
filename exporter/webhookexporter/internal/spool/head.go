// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package spool // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/spool"

import (
	"context"
	"encoding/json"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
)

// storedHead is the head of the audit log, as it is kept in the storage: where
// who can write the log's folder need not be able to write.
type storedHead struct {
	Path string `json:"path"` // of the file: another one is another log
	checkpoint.Head
}

const headKey = "audit"

// KeptHead is the head that was stored last; nil where none is known.
func (s *Store) KeptHead(ctx context.Context, path string) (*checkpoint.Head, error) {
	if s == nil {
		return nil, nil
	}
	texts, err := s.Read(ctx, []string{headKey})
	if err != nil {
		return nil, s.unreadable(err)
	}
	var stored storedHead
	if texts[0] == nil || json.Unmarshal(texts[0], &stored) != nil || stored.Path != path || stored.Log == "" {
		return nil, nil
	}
	return &stored.Head, nil
}

// KeepHead stores the head of the audit log; with wait it returns when that is
// done, or is known to fail.
func (s *Store) KeepHead(path string, h checkpoint.Head, wait bool) {
	if s == nil {
		return
	}
	text, _ := json.Marshal(storedHead{path, h}) // texts and numbers only
	s.Want(func(set func(string, []byte)) { set(headKey, text) })
	if wait {
		_ = s.Flush() // reported as every failure of the storage is
	}
}
