// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/logfile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/verify"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/collectors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/history"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/judge"
)

// While the file is blocked records wait, and when it is not any more the chain
// goes on, without a gap and over as many files as there were faults.
func TestBlockAudit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(audit.Options{Path: path, CheckpointInterval: 20 * time.Millisecond})
	require.NoError(t, err)
	written := int64(0)
	for range 2 {
		log.Write(&audit.Record{})
		require.NoError(t, blockAudit(path))
		// This one is still written, and the checkpoint after it finds the file moved.
		log.Write(&audit.Record{})
		require.Eventually(t, func() bool { return log.Stats().Failures > 0 }, time.Minute, time.Millisecond)
		require.Eventually(t, func() bool { log.Write(&audit.Record{}); return log.Stats().Buffered > 0 }, time.Minute, 10*time.Millisecond)
		require.NoError(t, os.Remove(path), "nothing was written into the folder")
		require.Eventually(t, func() bool { return log.Stats().Buffered == 0 && log.Stats().Written > written }, time.Minute, time.Millisecond)
		written = log.Stats().Written
	}
	require.NoError(t, log.Close())
	assert.Zero(t, log.Stats().Lost)
	files, err := logfile.Files(path)
	require.NoError(t, err)
	assert.Len(t, files, 3)
	report, err := verify.Files(verify.Options{}, files...)
	require.NoError(t, err)
	assert.True(t, report.Clean(), "%v", report.Break)
	assert.Equal(t, log.Stats().Written, report.Records)
	assert.Error(t, blockAudit(filepath.Join(t.TempDir(), "none")), "there is nothing to block")
}

// A component that is unaffected by a fault is judged as ever.
func TestHarmlessFaultDisturbsNothing(t *testing.T) {
	for _, k := range auditKinds() {
		assert.True(t, k.harmless, k.name)
		assert.Equal(t, history.Gateway, (&Fault{Kind: k}).where(), "with no other fault of the gateway")
	}
	nothing := func() error { return nil }
	for _, harmless := range []bool{true, false} {
		s := &Scene{
			Fleet: &fleet.Fleet{History: &history.History{}}, Collectors: &collectors.Collectors{},
			Verdict: judge.NewVerdict(&judge.Journal{Out: io.Discard}, 1),
		}
		began := time.Now()
		f := &Fault{Kind: &Kind{place: onGateway, harmless: harmless, begin: func(*Scene, *Fault) (func() error, error) { return nothing, nil }}}
		for _, want := range []bool{true, false} {
			on, err := f.Toggle(t.Context(), s)
			require.NoError(t, err)
			assert.Equal(t, want, on)
		}
		assert.Equal(t, !harmless, s.Fleet.History.WasDisturbed(history.Gateway, began, time.Now()))
	}
}
