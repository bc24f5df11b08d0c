// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/verify"
)

// contents are the log's files by name, whatever they are called.
func contents(t *testing.T, path string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	all := map[string]string{}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".jsonl") {
			text, err := os.ReadFile(filepath.Join(filepath.Dir(path), e.Name()))
			require.NoError(t, err)
			all[e.Name()] = string(text)
		}
	}
	return all
}

func lay(t *testing.T, path string, all map[string]string) {
	t.Helper()
	for name, text := range all {
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(text), 0o600))
	}
}

func withoutCheckpoints(e codec.Envelope, body any) any {
	if e.Kind == codec.KindCheckpoint {
		return nil
	}
	return body
}

// rewrite leaves checkpoints and records out, and makes failures of the rest
// successes: what an attacker without the key can do.
func rewrite(f *tampered) {
	n := 0
	f.restamp(0, 0, func(e codec.Envelope, body any) any {
		if r, ok := body.(*codec.RecordBody); ok {
			if n++; n%2 == 0 {
				return nil
			}
			r.Status = 204
		}
		return withoutCheckpoints(e, body)
	})
}

// cut ends the log where a writer closed it earlier.
func cut(f *tampered) {
	last := f.at(1, codec.KindClose, 0)
	require.Less(f.t, last, len(f.lines[1])-2, "the log goes on")
	if e, _, _ := codec.ParseEnvelope(f.lines[1][last+1]); e.Kind == codec.KindCheckpoint {
		last++
	}
	require.NoError(f.t, os.Rename(f.names[1], f.path))
	for _, name := range f.names[2:3] {
		require.NoError(f.t, os.Remove(name))
	}
	f.names, f.lines = []string{f.names[0], f.path}, [][][]byte{f.lines[0], f.lines[1][:last+1]}
}

// A writer continues, and signs, what it can vouch for. All else it sets aside,
// unchanged, and begins a new log.
func TestAWriterContinuesOnlyItsOwnHistory(t *testing.T) {
	key, keys := keyPair(t)
	_, otherKeys := keyPair(t)
	signed, plain, other := logPath(t), logPath(t), logPath(t)
	fourFiles(t, key, signed)
	fourFiles(t, nil, plain)
	fourFiles(t, key, other)
	remove := func(f *tampered) {
		for _, name := range f.names {
			require.NoError(f.t, os.Remove(name))
		}
		f.names, f.lines = nil, nil
	}
	swap := func(f *tampered) {
		lay(f.t, f.path, contents(f.t, other))
		f.load()
	}
	lost := func(f *tampered) { f.lines[3] = f.lines[3][:len(f.lines[3])-1] } // not only the checkpoint
	edit := func(f *tampered) { f.edit(3, f.at(3, codec.KindRecord, 0), `"status":503`, `"status":200`) }
	for _, test := range []struct {
		name                     string
		change                   func(*tampered)
		key, kept, both, neither bool // whether it is set aside, by what the writer has
	}{
		{name: "nothing", change: func(*tampered) {}},
		{name: "rewritten", change: rewrite, key: true, kept: true, both: true},
		{name: "cut at an earlier end", change: cut, kept: true, both: true},
		{name: "cut in mid-record", change: lost, kept: true, both: true},
		{name: "removed", change: remove, kept: true, both: true},
		{name: "another log of the key", change: swap, kept: true, both: true},
		{name: "an edited record", change: edit, neither: true},
		{name: "without checkpoints", change: func(f *tampered) { f.restamp(0, 0, withoutCheckpoints) }, key: true, both: true},
	} {
		for mode, want := range map[string]bool{"key": test.key, "kept": test.kept, "both": test.both, "neither": test.neither} {
			t.Run(test.name+"/"+mode, func(t *testing.T) {
				master := plain
				o := Options{Path: logPath(t)}
				if mode == "key" || mode == "both" {
					master, o.CheckpointKey = signed, key
				}
				f := &tampered{t: t, path: o.Path}
				lay(t, f.path, contents(t, master))
				whole := verified(t, f.path, verify.Options{})
				if mode == "kept" || mode == "both" {
					o.Kept = &checkpoint.Head{Log: whole.Log, Count: whole.LastSeq, Head: whole.Head}
				}
				f.load()
				test.change(f)
				f.store()
				before := slices.Sorted(maps.Values(contents(t, f.path)))
				core, logs := observer.New(zap.ErrorLevel)
				o.Logger = zap.New(core)
				var heads []checkpoint.Head
				o.Keep = func(h checkpoint.Head, _ bool) { heads = append(heads, h) }

				l := open(t, o)
				write(t, l, 1)
				require.NoError(t, l.Close())
				if !want {
					assert.NoError(t, l.SetAside())
					assert.Empty(t, setAsideFiles(t, o.Path))
					return
				}
				require.Error(t, l.SetAside())
				assert.EqualValues(t, 1, l.Stats().SetAside)
				assert.Equal(t, 1, logs.FilterMessageSnippet("set aside").Len())
				var aside []string
				for _, name := range setAsideFiles(t, o.Path) {
					text, err := os.ReadFile(name)
					require.NoError(t, err)
					aside = append(aside, string(text))
				}
				slices.Sort(aside)
				assert.Equal(t, before, aside, "unchanged, and nothing deleted")
				report := verified(t, o.Path, verify.Options{})
				require.Nil(t, report.Break)
				assert.EqualValues(t, 1, report.Records)
				assert.NotEqual(t, whole.Log, report.Log)
				assert.Equal(t, checkpoint.Head{Log: report.Log}, heads[0], "known before a file is touched")
				o.Kept = &heads[len(heads)-1]
				l = open(t, o)
				require.NoError(t, l.Close())
				assert.NoError(t, l.SetAside(), "the new one is continued")
			})
		}
	}

	for name, test := range map[string]struct {
		previous *checkpoint.PublicKeys
		aside    bool
	}{"known": {keys, false}, "of another": {otherKeys, true}, "none": {nil, true}} {
		t.Run("previous key: "+name, func(t *testing.T) {
			path := logPath(t)
			lay(t, path, contents(t, signed))
			next, _ := keyPair(t)
			l := open(t, Options{Path: path, CheckpointKey: next, PreviousKeys: test.previous})
			require.NoError(t, l.Close())
			assert.Equal(t, test.aside, l.SetAside() != nil, "%v", l.SetAside())
			requireClean(t, path, keys.With(next))
		})
	}
}

// A kill at any line, with a head kept elsewhere that is up to two checkpoints
// old or not there at all, makes no start set anything aside, and no log broken.
func TestNoKillSetsALogAside(t *testing.T) {
	key, keys := keyPair(t)
	type moment struct {
		files map[string]string
		heads []checkpoint.Head
	}
	for name, k := range map[string]*checkpoint.Key{"with a key": key, "without": nil} {
		t.Run(name, func(t *testing.T) {
			path := logPath(t)
			var moments []moment
			var heads []checkpoint.Head
			o := Options{Path: path, CheckpointKey: k, MaxBytes: 3000, MaxFiles: 3}
			o.Keep = func(h checkpoint.Head, _ bool) { heads = append(heads, h) }
			o.write = func(f *os.File, b []byte) (int, error) {
				moments = append(moments, moment{contents(t, path), slices.Clone(heads)})
				return f.Write(b)
			}
			l := open(t, o)
			write(t, l, 9)
			require.NoError(t, l.Close())
			require.Contains(t, kinds(verified(t, path, verify.Options{})), verify.RemovedFiles)
			for i, m := range moments {
				for lag := range 4 {
					o := Options{Path: logPath(t), CheckpointKey: k}
					if at := len(m.heads) - 1 - lag; at >= 0 && lag < 3 {
						o.Kept = &m.heads[at]
					}
					lay(t, o.Path, m.files)
					l := open(t, o)
					require.NoError(t, l.SetAside(), "moment %d, lag %d", i, lag)
					require.NoError(t, l.Close())
					if k != nil {
						requireClean(t, o.Path, keys)
					}
				}
			}
		})
	}
}

// A log that was rewritten without the key does not become clean by the
// checkpoints of a writer that signs what it finds, as earlier versions did.
func TestACheckpointVouchesForItsOwnWriterAlone(t *testing.T) {
	key, keys := keyPair(t)
	path := logPath(t)
	fourFiles(t, key, path)
	whole := requireClean(t, path, keys)
	f := &tampered{t: t, path: path}
	f.load()
	rewrite(f)
	last := len(f.lines) - 1
	appendTo(f, last, codec.KindOpen, func(*codec.Envelope) any { return codec.OpenBody{} })
	appendTo(f, last, codec.KindCheckpoint, func(e *codec.Envelope) any {
		c, err := key.Sign(whole.Log, e.Seq-1, e.Prev, whole.LastCheckpoint.Time)
		require.NoError(t, err)
		return c
	})
	f.store()
	anchors := []verify.Anchor{{Count: whole.LastSeq, Head: whole.Head}}
	for name, test := range map[string]struct {
		o    verify.Options
		want verify.FindingKind
	}{
		"key":            {verify.Options{PublicKeys: keys}, verify.Uncheckpointed},
		"key and anchor": {verify.Options{PublicKeys: keys, Anchors: anchors}, verify.Uncheckpointed},
		"anchor":         {verify.Options{Anchors: anchors}, verify.AnchorMismatch},
		"neither":        {verify.Options{}, ""},
	} {
		report := verified(t, path, test.o)
		if test.want == "" {
			assert.Nil(t, report.Break, name)
		} else if assert.NotNil(t, report.Break, name) {
			assert.Equal(t, test.want, report.Break.Kind, name)
		}
	}
}

// appendTo appends a line to a file of the log, as the chain has it.
func appendTo(f *tampered, file int, kind string, body func(*codec.Envelope) any) {
	f.t.Helper()
	lines := f.lines[file]
	end := lines[len(lines)-1]
	before, _, err := codec.ParseEnvelope(end)
	require.NoError(f.t, err)
	e := codec.Envelope{Seq: before.Seq + 1, Prev: sha256.Sum256(end), Kind: kind}
	raw, err := json.Marshal(body(&e))
	require.NoError(f.t, err)
	f.lines[file] = append(lines, bytes.TrimSuffix(codec.Append(nil, e, raw), []byte{'\n'}))
}

// A writer of the folder can append a line that records that files were
// deleted, and delete them. With a key that is seen, after a restart too.
func TestAForgedRemovalIsABreak(t *testing.T) {
	key, keys := keyPair(t)
	master := logPath(t)
	fourFiles(t, key, master)
	for name, test := range map[string]struct {
		from, to int  // files that are deleted
		restart  bool // a writer continues the log then
		keyed    verify.FindingKind
		plain    verify.FindingKind // without a key; "" is clean
	}{
		"the oldest files":               {0, 2, false, verify.ForgedRemoval, ""},
		"the oldest files, then a start": {0, 2, true, verify.ForgedRemoval, ""},
		"one in the middle":              {1, 2, false, verify.MissingFile, verify.MissingFile},
	} {
		t.Run(name, func(t *testing.T) {
			f := &tampered{t: t, path: logPath(t)}
			lay(t, f.path, contents(t, master))
			f.load()
			first, _, err := codec.ParseEnvelope(f.lines[test.to][0])
			require.NoError(t, err)
			f.lines[3] = f.lines[3][:len(f.lines[3])-2] // a writer that is running, or was killed
			f.store()
			whole := requireClean(t, f.path, keys)
			anchors := []verify.Anchor{{Count: whole.LastSeq, Head: whole.Head}}
			appendTo(f, 3, codec.KindRemoved, func(*codec.Envelope) any {
				return codec.RemovedBody{ThroughFile: test.to, LastSeq: first.Seq - 1, Head: first.Prev.String()}
			})
			f.store()
			for _, gone := range f.names[test.from:test.to] {
				require.NoError(t, os.Remove(gone))
			}
			if test.restart {
				require.NoError(t, open(t, Options{Path: f.path, CheckpointKey: key}).Close())
			}
			for _, o := range []verify.Options{{PublicKeys: keys}, {PublicKeys: keys, Anchors: anchors}, {}, {Anchors: anchors}} {
				report := verified(t, f.path, o)
				want := test.plain
				if o.PublicKeys != nil {
					want = test.keyed
				}
				if want == "" {
					assert.Nil(t, report.Break)
				} else if assert.NotNil(t, report.Break) {
					assert.Equal(t, want, report.Break.Kind, report.Break.Detail)
				}
			}
		})
	}
}

// A writer leaves no more lines without a checkpoint than verify allows.
func TestAStretchWithoutCheckpointIsBounded(t *testing.T) {
	key, keys := keyPair(t)
	path := logPath(t)
	l := open(t, Options{Path: path, CheckpointKey: key, uncovered: 5})
	write(t, l, 20)
	require.NoError(t, l.Close())
	for stretch, want := range map[int64]bool{7: true, 4: false} {
		report := verified(t, path, verify.Options{PublicKeys: keys, MaxUncovered: stretch})
		assert.Equal(t, want, report.Clean(), "%+v", report.Break)
		assert.Equal(t, want, report.Closed)
	}
}
