// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec/codectest"
)

// No name of a log or a key has control characters in it.
func TestNamesAreSafeToShow(t *testing.T) {
	escape := "\x1b[2K\x1b[1Gclean: 401 records\u202e"
	first, _ := json.Marshal(codec.FileBody{Log: escape, File: 1})
	origin, _ := json.Marshal(codec.CheckpointBody{Origin: escape, KeyID: "0"})
	for _, body := range [][]byte{first, origin} {
		kind := codec.KindFile
		if bytes.Contains(body, []byte("origin")) {
			kind = codec.KindCheckpoint
		}
		_, _, err := codec.Parse(bytes.TrimSuffix(codec.Append(nil, codec.Envelope{Seq: 1, Kind: kind}, body), []byte{'\n'}))
		assert.ErrorIs(t, err, codec.ErrNotALine, kind)
	}
}

// FuzzLine: what is accepted is written again in the same bytes.
func FuzzLine(f *testing.F) {
	text, _, _ := codectest.Lines(2)
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		f.Add(line)
	}
	raw, _ := json.Marshal(codec.RecordBody{ID: "1", Events: []codec.EventBody{{Name: "gpu.xid", ID: "2"}}, Outcome: "failed"})
	f.Add(string(codec.Append(nil, codec.Envelope{Seq: 7, Kind: codec.KindRecord}, raw)))
	f.Fuzz(func(t *testing.T, line string) {
		e, body, err := codec.Parse([]byte(line))
		if err != nil {
			return
		}
		raw, err := json.Marshal(body)
		require.NoError(t, err)
		require.Equal(t, line+"\n", string(codec.Append(nil, e, raw)))
	})
}
