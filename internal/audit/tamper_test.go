// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/verify"
)

// tampered is a log of four files in which something is changed.
type tampered struct {
	t     *testing.T
	path  string
	names []string   // of the files, oldest first
	lines [][][]byte // by file
}

// fourFiles writes a log of four files: three full ones and one of 8 records,
// closed in good order, with a checkpoint in the middle of every file.
func fourFiles(t *testing.T, key *checkpoint.Key, path string) {
	t.Helper()
	now := func() int { return len(files(t, path)) }
	for i := 0; ; i++ {
		l := open(t, Options{Path: path, CheckpointKey: key, MaxBytes: 20_000})
		before := now()
		write(t, l, 4)
		after := now()
		require.NoError(t, l.Close())
		if before == 4 && after == 4 {
			return
		}
		require.Less(t, i, 100)
	}
}

func (f *tampered) load() {
	f.names = files(f.t, f.path)
	f.lines = nil
	for _, name := range f.names {
		f.lines = append(f.lines, linesOf(f.t, name))
	}
}

func (f *tampered) store() {
	for i, name := range f.names {
		writeLines(f.t, name, f.lines[i])
	}
}

// at is the index of the n-th line of a kind in a file.
func (f *tampered) at(file int, kind string, n int) int {
	f.t.Helper()
	for i, line := range f.lines[file] {
		if e, _, err := codec.ParseEnvelope(line); err == nil && e.Kind == kind {
			if n == 0 {
				return i
			}
			n--
		}
	}
	f.t.Fatalf("no such line: %s", kind)
	return 0
}

// edit replaces text in a line, which must have it.
func (f *tampered) edit(file, line int, old, with string) {
	f.t.Helper()
	require.Contains(f.t, string(f.lines[file][line]), old)
	f.lines[file][line] = bytes.Replace(f.lines[file][line], []byte(old), []byte(with), 1)
}

// restamp rewrites the chain from a line on: numbers, links, and both in
// checkpoints. Signatures it cannot make.
func (f *tampered) restamp(fromFile, fromLine int, change func(codec.Envelope, any) any) {
	f.t.Helper()
	var seq uint64
	var head codec.Digest
	var out [][][]byte
	for i := range f.lines {
		out = append(out, nil)
		for j, line := range f.lines[i] {
			if i > fromFile || i == fromFile && j >= fromLine {
				e, body, err := codec.Parse(line)
				require.NoError(f.t, err)
				if body = change(e, body); body == nil {
					continue
				}
				if c, ok := body.(*codec.CheckpointBody); ok {
					c.Count, c.Head = seq, head.String()
				}
				raw, err := json.Marshal(body)
				require.NoError(f.t, err)
				line = bytes.TrimSuffix(codec.Append(nil, codec.Envelope{Seq: seq + 1, Prev: head, Kind: e.Kind}, raw), []byte{'\n'})
			}
			seq++
			head = sha256.Sum256(line)
			out[i] = append(out[i], line)
		}
	}
	f.lines = out
}

func same(_ codec.Envelope, body any) any { return body }

func TestEveryManipulationIsFoundInItsPlace(t *testing.T) {
	type place struct {
		file, line int // from 0; line -1 is the last
	}
	tests := map[string]struct {
		change  func(*tampered) place
		want    verify.FindingKind
		unkeyed verify.FindingKind // without a public key; as want if empty, "clean" if it cannot be found
	}{
		"nothing": {change: func(*tampered) place { return place{} }},
		"drop a record": {want: verify.Missing, change: func(f *tampered) place {
			i := f.at(1, codec.KindRecord, 2)
			f.lines[1] = slices.Delete(f.lines[1], i, i+1)
			return place{1, i}
		}},
		"drop several records": {want: verify.Missing, change: func(f *tampered) place {
			i := f.at(1, codec.KindRecord, 2)
			f.lines[1] = slices.Delete(f.lines[1], i, i+3)
			return place{1, i}
		}},
		"drop the first line of a file": {want: verify.Missing, change: func(f *tampered) place {
			f.lines[2] = f.lines[2][1:]
			return place{2, 0}
		}},
		"drop the log's first line": {want: verify.MissingFile, change: func(f *tampered) place {
			f.lines[0] = f.lines[0][1:]
			return place{0, 0}
		}},
		"drop a checkpoint": {want: verify.Missing, change: func(f *tampered) place {
			i := f.at(1, codec.KindCheckpoint, 0)
			f.lines[1] = slices.Delete(f.lines[1], i, i+1)
			return place{1, i}
		}},
		"insert a copy": {want: verify.Inserted, change: func(f *tampered) place {
			i := f.at(1, codec.KindRecord, 2)
			f.lines[1] = slices.Insert(f.lines[1], i+1, f.lines[1][i])
			return place{1, i + 1}
		}},
		"insert an old copy": {want: verify.Inserted, change: func(f *tampered) place {
			i := f.at(1, codec.KindRecord, 4)
			f.lines[1] = slices.Insert(f.lines[1], i, f.lines[0][2])
			return place{1, i}
		}},
		"insert a forged record that fits": {want: verify.Inserted, change: func(f *tampered) place {
			i := f.at(1, codec.KindRecord, 2)
			forged := bytes.Replace(f.lines[1][i], []byte("ops-slack"), []byte("ops-fake1"), 1)
			f.lines[1] = slices.Insert(f.lines[1], i, forged)
			return place{1, i}
		}},
		"swap neighbours": {want: verify.Moved, change: func(f *tampered) place {
			i := f.at(1, codec.KindRecord, 2)
			f.lines[1][i], f.lines[1][i+1] = f.lines[1][i+1], f.lines[1][i]
			return place{1, i}
		}},
		"swap records far apart": {want: verify.Moved, change: func(f *tampered) place {
			i, j := f.at(0, codec.KindRecord, 2), f.at(2, codec.KindRecord, 5)
			f.lines[0][i], f.lines[2][j] = f.lines[2][j], f.lines[0][i]
			return place{0, i}
		}},
		"edit a status": {want: verify.Edited, change: func(f *tampered) place {
			i := f.at(1, codec.KindRecord, 2)
			f.edit(1, i, `"status":503`, `"status":200`)
			return place{1, i}
		}},
		"edit the last record": {want: verify.Edited, change: func(f *tampered) place {
			i := f.at(3, codec.KindClose, 0)
			for e := range f.lines[3] {
				if env, _, _ := codec.ParseEnvelope(f.lines[3][e]); env.Kind == codec.KindClose {
					i = e
				}
			}
			f.edit(3, i-1, `"status":503`, `"status":200`)
			return place{3, i - 1}
		}},
		"edit a number": {want: verify.Edited, change: func(f *tampered) place {
			i := f.at(1, codec.KindRecord, 2)
			e, _, _ := codec.ParseEnvelope(f.lines[1][i])
			f.lines[1][i] = bytes.TrimSuffix(codec.Append(nil, codec.Envelope{Seq: e.Seq + 100, Prev: e.Prev, Kind: e.Kind}, bodyOf(f.lines[1][i])), []byte{'\n'})
			return place{1, i}
		}},
		"edit a link": {want: verify.Edited, change: func(f *tampered) place {
			i := f.at(1, codec.KindRecord, 2)
			e, _, _ := codec.ParseEnvelope(f.lines[1][i])
			e.Prev[0] ^= 1
			f.lines[1][i] = bytes.TrimSuffix(codec.Append(nil, e, bodyOf(f.lines[1][i])), []byte{'\n'})
			return place{1, i}
		}},
		"the same in other words": {want: verify.Malformed, change: func(f *tampered) place {
			i := f.at(1, codec.KindRecord, 2)
			f.edit(1, i, `"status":503`, `"status": 503`)
			return place{1, i}
		}},
		"a field twice": {want: verify.Malformed, change: func(f *tampered) place {
			i := f.at(1, codec.KindRecord, 2)
			f.edit(1, i, `"status":503`, `"status":200,"status":503`)
			return place{1, i}
		}},
		"truncate a full file": {want: verify.Missing, change: func(f *tampered) place {
			f.lines[1] = f.lines[1][:len(f.lines[1])-3]
			return place{2, 0}
		}},
		"truncate a full file in mid-line": {want: verify.Malformed, change: func(f *tampered) place {
			last := len(f.lines[1]) - 1
			f.store()
			require.NoError(f.t, os.Truncate(f.names[1], int64(len(bytes.Join(f.lines[1][:last], []byte{'\n'}))+40)))
			f.names = nil // stored
			return place{1, last}
		}},
		"restamp a time": {want: verify.CheckpointMismatch, change: func(f *tampered) place {
			i := f.at(1, codec.KindRecord, 2)
			f.restamp(1, i, func(e codec.Envelope, body any) any {
				if r, ok := body.(*codec.RecordBody); ok {
					r.Time = r.Time.Add(-1e9)
				}
				return body
			})
			return place{1, nextCheckpoint(f, 1, i)}
		}, unkeyed: "clean"},
		"restamp without the record": {want: verify.CheckpointMismatch, change: func(f *tampered) place {
			i := f.at(1, codec.KindRecord, 2)
			f.lines[1] = slices.Delete(f.lines[1], i, i+1)
			f.restamp(1, i, same)
			return place{1, nextCheckpoint(f, 1, i)}
		}, unkeyed: "clean"},
		"restamp without checkpoints": {want: verify.Unsigned, change: func(f *tampered) place {
			f.restamp(0, 0, func(e codec.Envelope, body any) any {
				if e.Kind == codec.KindCheckpoint {
					return nil
				}
				return body
			})
			return place{3, -1}
		}, unkeyed: "clean"},
		"sign with another key": {want: verify.UnknownKey, change: func(f *tampered) place {
			key, _ := keyPair(f.t)
			i := f.at(0, codec.KindCheckpoint, 0)
			log := f.log()
			f.restamp(0, i, func(e codec.Envelope, body any) any {
				if e.Kind == codec.KindCheckpoint && e.Seq == uint64(i+1) {
					c, err := key.Sign(log, e.Seq-1, e.Prev, body.(*codec.CheckpointBody).Time)
					require.NoError(f.t, err)
					return c
				}
				return body
			})
			return place{0, i}
		}, unkeyed: "clean"},
		"a damaged signature": {want: verify.BadSignature, change: func(f *tampered) place {
			i := f.at(3, codec.KindCheckpoint, 0)
			var c *codec.CheckpointBody
			f.restamp(3, i, func(e codec.Envelope, body any) any {
				if b, ok := body.(*codec.CheckpointBody); ok && c == nil {
					c = b
					at := strings.LastIndex(c.Note, " ") + 20
					flipped := byte('A')
					if c.Note[at] == 'A' {
						flipped = 'B'
					}
					c.Note = c.Note[:at] + string(flipped) + c.Note[at+1:]
				}
				return body
			})
			return place{3, i}
		}, unkeyed: "clean"},
		"remove a file": {want: verify.MissingFile, change: func(f *tampered) place {
			require.NoError(f.t, os.Remove(f.names[1]))
			f.names, f.lines = slices.Delete(f.names, 1, 2), slices.Delete(f.lines, 1, 2)
			return place{1, 0}
		}},
		"remove the first file": {want: verify.MissingFile, change: func(f *tampered) place {
			require.NoError(f.t, os.Remove(f.names[0]))
			f.names, f.lines = f.names[1:], f.lines[1:]
			return place{0, 0}
		}},
		"replace a file by another of the log": {want: verify.Moved, change: func(f *tampered) place {
			f.lines[2] = f.lines[0]
			return place{2, 0}
		}},
		"replace a file by one of another log": {want: verify.ForeignFile, change: func(f *tampered) place {
			other := &tampered{t: f.t, path: logPath(f.t)}
			fourFiles(f.t, nil, other.path)
			other.load()
			f.lines[2] = other.lines[2]
			return place{2, 0}
		}},
		"replace a file by a forged one that is sound in itself": {want: verify.ForeignFile, change: func(f *tampered) place {
			keep := f.lines[1]
			last := len(keep) - 1
			f.lines[1] = append(slices.Clone(keep[:last]), bytes.Replace(keep[last], []byte(`"key_id":"`), []byte(`"key_id":"0`), 1))
			f.restamp(2, 0, same)
			f.lines[1] = keep
			return place{2, 0}
		}, unkeyed: verify.Edited},
		"swap files": {want: verify.MissingFile, change: func(f *tampered) place {
			f.lines[1], f.lines[2] = f.lines[2], f.lines[1]
			return place{1, 0}
		}},
	}
	key, keys := keyPair(t)
	master := logPath(t)
	fourFiles(t, key, master)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := &tampered{t: t, path: logPath(t)}
			for _, file := range files(t, master) {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(f.path), filepath.Base(file)), text, 0o600))
			}
			f.load()
			names := slices.Clone(f.names)
			where := test.change(f)
			if f.names != nil {
				names = f.names
				f.store()
			}
			report := verified(t, f.path, verify.Options{PublicKeys: keys})
			if test.want == "" {
				require.Nil(t, report.Break, "%+v", report.Break)
				return
			}
			require.NotNil(t, report.Break)
			got := report.Break
			if where.line < 0 {
				where.line = len(f.lines[where.file]) - 1
			}
			assert.Equal(t, test.want, got.Kind, got.Detail)
			assert.Equal(t, names[where.file], got.File, got.Detail)
			assert.Equal(t, where.line+1, got.Line, got.Detail)

			report = verified(t, f.path, verify.Options{})
			switch test.unkeyed {
			case "clean":
				assert.Nil(t, report.Break, "the chain alone cannot show it: %+v", report.Break)
				assert.False(t, report.SignaturesChecked)
			case "":
				require.NotNil(t, report.Break)
				assert.Equal(t, test.want, report.Break.Kind)
			default:
				require.NotNil(t, report.Break)
				assert.Equal(t, test.unkeyed, report.Break.Kind)
			}
		})
	}
}

func (f *tampered) log() string {
	_, body, err := codec.Parse(f.lines[0][0])
	require.NoError(f.t, err)
	return body.(*codec.FileBody).Log
}

func bodyOf(line []byte) []byte {
	_, body, _ := codec.ParseEnvelope(line)
	return body
}

func nextCheckpoint(f *tampered, file, after int) int {
	for i, line := range f.lines[file][after:] {
		if e, _, _ := codec.ParseEnvelope(line); e.Kind == codec.KindCheckpoint {
			return after + i
		}
	}
	f.t.Fatal("no checkpoint follows")
	return 0
}
