// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/verify"
)

// What is cut off after the last checkpoint, or from a checkpoint on, leaves a
// sound log behind. Only what is known from elsewhere shows it.
func TestAnAnchorShowsATruncatedEnd(t *testing.T) {
	key, keys := keyPair(t)
	path := logPath(t)
	l := open(t, Options{Path: path, CheckpointKey: key})
	write(t, l, 10)
	require.NoError(t, l.Close())
	whole := requireClean(t, path, keys)
	anchor := verify.Anchor{Count: whole.LastSeq, Head: whole.Head}
	lines := linesOf(t, path)
	writeLines(t, path, lines[:8])

	report := requireClean(t, path, keys)
	assert.Contains(t, kinds(report), verify.NotClosed, "said, but it is no proof")
	assert.EqualValues(t, 5, report.Uncovered)

	report = verified(t, path, verify.Options{PublicKeys: keys, Anchors: []verify.Anchor{anchor}})
	require.NotNil(t, report.Break)
	assert.Equal(t, verify.AnchorMismatch, report.Break.Kind)
	assert.Equal(t, 8, report.Break.Line)

	writeLines(t, path, lines)
	assert.Nil(t, verified(t, path, verify.Options{Anchors: []verify.Anchor{anchor}}).Break)
	anchor.Head = strings.Repeat("0", 64)
	report = verified(t, path, verify.Options{Anchors: []verify.Anchor{anchor}})
	require.NotNil(t, report.Break)
	assert.Equal(t, verify.AnchorMismatch, report.Break.Kind)
}

// Any single byte of a closed, signed log, changed to any other value, is found,
// and the break is in the line of the byte, or next to it where that line is at
// the very end.
func TestAnyChangedByteIsFound(t *testing.T) {
	key, keys := keyPair(t)
	path := logPath(t)
	l := open(t, Options{Path: path, CheckpointKey: key, MaxBytes: 2500})
	write(t, l, 3)
	require.NoError(t, l.Close())
	requireClean(t, path, keys)
	random := rand.New(rand.NewPCG(1, 2))
	names := files(t, path)
	require.Greater(t, len(names), 1)
	checked := 0
	for i, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for at := range text {
			changed := slices.Clone(text)
			changed[at] ^= byte(1 + random.IntN(255))
			require.NoError(t, os.WriteFile(name, changed, 0o600))
			report := verified(t, path, verify.Options{PublicKeys: keys})
			cut := i == len(names)-1 && at == len(text)-1 // the last line feed: an interrupted write, reported as such
			if cut {
				require.Contains(t, kinds(report), verify.InterruptedWrite)
				continue
			}
			require.NotNil(t, report.Break, "byte %d of %s: %q to %q", at, name, text[at], changed[at])
			require.Equal(t, name, report.Break.File)
			require.Equal(t, 1+bytes.Count(text[:at], []byte{'\n'}), report.Break.Line, "byte %d: %q to %q: %s", at, text[at], changed[at], report.Break.Detail)
			checked++
		}
		require.NoError(t, os.WriteFile(name, text, 0o600))
	}
	t.Logf("%d bytes", checked)
}
