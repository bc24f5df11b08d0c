// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package codectest makes lines of an audit log for tests.
package codectest // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec/codectest"

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
)

// Lines returns the first n lines of a log, and where its chain stands behind them.
func Lines(n int) (text []byte, seq uint64, head codec.Digest) {
	add := func(kind string, body any) {
		raw, _ := json.Marshal(body)
		line := codec.Append(nil, codec.Envelope{Seq: seq + 1, Prev: head, Kind: kind}, raw)
		text, seq, head = append(text, line...), seq+1, sha256.Sum256(line[:len(line)-1])
	}
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	add(codec.KindFile, codec.FileBody{Time: now, Log: "0195d3a8-7a4e-7c2b-9d61-1f2e3a4b5c6d", File: 1})
	for range n - 1 {
		add(codec.KindOpen, codec.OpenBody{Time: now})
	}
	return text, seq, head
}
