// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec/codectest"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/logfile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/verify"
)

const writerEnv = "AUDIT_TEST_WRITER"

// TestWriterProcess is the child of TestKilledWriterLosesNothing: it writes
// records until it is killed, and names each that was acknowledged.
func TestWriterProcess(t *testing.T) {
	path := os.Getenv(writerEnv)
	if path == "" {
		t.Skip("is run by another test")
	}
	key, err := os.ReadFile(path + ".key")
	require.NoError(t, err)
	checkpoints, err := checkpoint.ParseKey(string(key))
	require.NoError(t, err)
	l := open(t, Options{Path: path, CheckpointKey: checkpoints, MaxBytes: 50_000, MaxFiles: 1000, CheckpointInterval: 5 * time.Millisecond})
	for range 4 {
		go func() {
			for {
				r := sample()
				if _, written := l.Append(r); written {
					fmt.Fprintf(os.Stdout, "wrote %s\n", r.ID) // one write each
				}
			}
		}()
	}
	time.Sleep(time.Minute) // the parent kills it long before
}

// A process that is killed anywhere leaves a log that can be continued, is
// clean, and has every record that was acknowledged, each once.
func TestKilledWriterLosesNothing(t *testing.T) {
	path := logPath(t)
	private, public, err := checkpoint.GenerateKey("test")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path+".key", []byte(private), 0o600))
	keys, err := checkpoint.ParsePublicKeys(public)
	require.NoError(t, err)

	const rounds = 12
	acknowledged := map[string]int{}
	var recent []string
	for round := range rounds {
		cmd := exec.Command(os.Args[0], "-test.run=^TestWriterProcess$")
		cmd.Env = append(os.Environ(), writerEnv+"="+path)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		in := bufio.NewScanner(out)
		count := 0
		for in.Scan() {
			if id, ok := strings.CutPrefix(in.Text(), "wrote "); ok && len(id) == 36 {
				acknowledged[id]++
				recent = append(recent, id)
			}
			if count++; count == 20+37*round {
				require.NoError(t, cmd.Process.Kill())
			}
		}
		_ = cmd.Wait()
	}
	require.Greater(t, len(acknowledged), 20*rounds)

	l := open(t, Options{Path: path})
	found := l.Find(recent[len(recent)-50:])
	assert.Len(t, found, 50)
	assert.Empty(t, l.Find([]string{newID()}))
	require.NoError(t, l.Close())

	report := requireClean(t, path, keys)
	assert.GreaterOrEqual(t, report.Records, int64(len(acknowledged)))
	written := map[string]int{}
	for _, name := range files(t, path) {
		for _, line := range linesOf(t, name) {
			if _, body, err := codec.Parse(line); err == nil {
				if r, ok := body.(*codec.RecordBody); ok {
					written[r.ID]++
				}
			}
		}
	}
	for id := range acknowledged {
		require.Equal(t, 1, written[id], id)
	}
	assert.Contains(t, kinds(report), verify.UncleanEnd)
	t.Logf("%d kills, %d records in %d files", rounds, report.Records, len(report.Files))
}

// However much of a line reached the file before the end, the next writer keeps
// what is whole, closes off the rest, and verify reports it correctly.
func TestInterruptedWriteAtEveryByte(t *testing.T) {
	key, keys := keyPair(t)
	path := logPath(t)
	l := open(t, Options{Path: path, CheckpointKey: key})
	ids := write(t, l, 2)
	require.NoError(t, l.Close())
	lines := linesOf(t, path)
	kept := append(bytes.Join(lines[:4], []byte{'\n'}), '\n') // up to the first record
	line := append(lines[4], '\n')                            // the second
	for cut := 0; cut <= len(line); cut += 1 + cut%3 {
		require.NoError(t, os.WriteFile(path, slices.Concat(kept, line[:cut]), 0o600))
		if cut > 0 && cut < len(line) {
			assert.Contains(t, kinds(requireClean(t, path, keys)), verify.InterruptedWrite)
		}
		l := open(t, Options{Path: path, CheckpointKey: key})
		whole := cut >= len(line)-1 // only the line feed is missing
		found := slices.Sorted(maps.Keys(l.Find(ids)))
		if whole {
			require.Equal(t, ids, found, "cut at %d", cut)
		} else {
			require.Equal(t, ids[:1], found, "cut at %d", cut)
		}
		write(t, l, 1)
		require.NoError(t, l.Close())
		report := requireClean(t, path, keys)
		assert.EqualValues(t, len(found)+1, report.Records)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, bytes.HasPrefix(text, slices.Concat(kept, line[:cut])), "nothing that was there is lost")
		if cut > 0 && !whole {
			assert.Contains(t, kinds(report), verify.InterruptedWrite)
		} else {
			assert.NotContains(t, kinds(report), verify.InterruptedWrite)
		}
	}
}

// The very first write of a log, and the first of a further file, can be
// interrupted too.
func TestInterruptedBeginning(t *testing.T) {
	for name, rest := range map[string]string{
		"empty":     "",
		"a part":    `{"v":1,"seq":1,"prev_ha`,
		"zeros":     strings.Repeat("\x00", 5000),
		"one brace": "{",
	} {
		t.Run(name, func(t *testing.T) {
			key, keys := keyPair(t)
			path := logPath(t)
			require.NoError(t, os.WriteFile(path, []byte(rest), 0o600))
			first := open(t, Options{Path: path, CheckpointKey: key})
			write(t, first, 1)
			second := filepath.Join(t.TempDir(), "audit.jsonl")
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, first.Close())
			require.NoError(t, os.WriteFile(logfile.RotatedName(second, 1), text, 0o600))
			require.NoError(t, os.WriteFile(second, []byte(rest), 0o600))
			l := open(t, Options{Path: second, CheckpointKey: key, MaxBytes: 4000})
			write(t, l, 8)
			require.NoError(t, l.Close())
			report := requireClean(t, second, keys)
			assert.EqualValues(t, 9, report.Records)
			assert.Greater(t, len(report.Files), 2)
		})
	}
}

// A rotation that was interrupted after the rename leaves no file to write to.
func TestInterruptedRotation(t *testing.T) {
	key, keys := keyPair(t)
	path := logPath(t)
	l := open(t, Options{Path: path, CheckpointKey: key})
	write(t, l, 3)
	require.NoError(t, l.Close())
	require.NoError(t, os.Rename(path, logfile.RotatedName(path, 1)))
	l = open(t, Options{Path: path, CheckpointKey: key})
	write(t, l, 3)
	require.NoError(t, l.Close())
	report := requireClean(t, path, keys)
	assert.EqualValues(t, 6, report.Records)
	assert.Len(t, report.Files, 2)
}

// The first line of a further file can be interrupted at any byte, and the line that
// closes it off be the last that a process writes: the log stays the same one, and
// clean, also when this file is the oldest that is left.
func TestInterruptedFirstLineOfAFile(t *testing.T) {
	key, keys := keyPair(t)
	first := logPath(t)
	l := open(t, Options{Path: first, CheckpointKey: key})
	write(t, l, 3)
	require.NoError(t, l.Close())
	whole := requireClean(t, first, keys)
	full, err := os.ReadFile(first)
	require.NoError(t, err)
	require.NoError(t, os.Rename(first, logfile.RotatedName(first, 1)))
	l = open(t, Options{Path: first, CheckpointKey: key})
	write(t, l, 1)
	require.NoError(t, l.Close())
	header := linesOf(t, first)[0]
	for cut := 0; cut <= len(header); cut += 1 + 39*min(1, max(0, len(header)-40-cut)) {
		for _, k := range []*checkpoint.Key{key, nil} {
			path := logPath(t)
			require.NoError(t, os.WriteFile(logfile.RotatedName(path, 1), full, 0o600))
			require.NoError(t, os.WriteFile(path, header[:cut], 0o600))
			writes := 0
			l := open(t, Options{Path: path, CheckpointKey: k, closeTimeout: 1, write: func(f *os.File, b []byte) (int, error) {
				if writes++; writes > 1 {
					return 0, syscall.ENOSPC
				}
				return f.Write(b)
			}})
			require.NoError(t, l.SetAside())
			_ = l.Close()
			l = open(t, Options{Path: path, CheckpointKey: k, MaxBytes: 2500, MaxFiles: 2})
			require.NoError(t, l.SetAside(), "cut at %d", cut)
			write(t, l, 3)
			require.NoError(t, l.Close())
			vouched := keys
			if k == nil {
				vouched = nil
			}
			report := requireClean(t, path, vouched)
			assert.Equal(t, whole.Log, report.Log, "cut at %d", cut)
			assert.Contains(t, kinds(report), verify.RemovedFiles)
		}
	}
}

// What is no audit log is not written to.
func TestOthersFilesAreLeftAlone(t *testing.T) {
	path := logPath(t)
	text := []byte("Nov 21 07:00:00 host kernel: something else\n")
	require.NoError(t, os.WriteFile(path, text, 0o644))
	_, err := Open(Options{Path: path})
	assert.ErrorContains(t, err, "is no audit log")
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, text, after)
}

// FuzzOpen damages a file anyhow: opening and going on never panics, never
// changes what is there, and never spoils the good lines before the damage.
func FuzzOpen(f *testing.F) {
	prefix, seq, head := codectest.Lines(3)
	f.Add([]byte(nil))
	f.Add([]byte("\n"))
	f.Add([]byte(`{"v":1,"seq":4,`))
	f.Add(codec.Append(nil, codec.Envelope{Seq: seq + 1, Prev: head, Kind: codec.KindClose}, []byte("{}")))
	f.Add(codec.Append(nil, codec.Envelope{Seq: seq + 1, Prev: head, Kind: codec.KindTorn}, []byte(`{"time":"2026-03-04T05:06:07Z","bytes":3,"sha256":"x"}`)))
	f.Add([]byte("\x00\x00\n\xff\n{}"))
	// Nothing but its line feed is missing, and it is not linked to the line before it.
	unlinked := codec.Append(nil, codec.Envelope{Seq: seq + 1, Kind: codec.KindClose}, []byte("{}"))
	f.Add(unlinked[:len(unlinked)-1])
	f.Fuzz(func(t *testing.T, damage []byte) {
		path := logPath(t)
		require.NoError(t, os.WriteFile(path, slices.Concat(prefix, damage), 0o600))
		l := open(t, Options{Path: path})
		write(t, l, 1)
		require.NoError(t, l.Close())
		was := path
		if l.SetAside() != nil {
			// Only a whole line can be taken for one of ours.
			require.Contains(t, string(damage), string(codec.Prefix))
			requireClean(t, path, nil)
			was = setAsideFiles(t, path)[0]
		}
		text, err := os.ReadFile(was)
		require.NoError(t, err)
		require.True(t, bytes.HasPrefix(text, slices.Concat(prefix, damage)))
		if was == path {
			require.GreaterOrEqual(t, requireClean(t, path, nil).Records, int64(1))
		}
	})
}
