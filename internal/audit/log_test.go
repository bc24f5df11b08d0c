// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestALineReportsEverything(t *testing.T) {
	path := logPath(t)
	l := open(t, Options{Path: path})
	r := sample()
	r.Time = time.Date(2026, 3, 4, 6, 6, 7, 890_000_000, time.FixedZone("CET", 3600))
	r.Events = append(r.Events, Event{Name: "gpu.xid", ID: "no time"})
	r.NextAttempt = r.Time.Add(time.Minute)
	r.Trigger = TriggerReplay
	r.URLHost = "bad\xffutf8 \"kind\":\"record\",\"id\":\"x\""
	seq, written := l.Append(r)
	require.True(t, written)
	assert.Empty(t, l.Find([]string{"x"}), "a text cannot pass for an id")
	require.NoError(t, l.Close())
	requireClean(t, path, nil)

	var got map[string]any
	require.NoError(t, json.Unmarshal(linesOf(t, path)[seq-1], &got))
	for key, want := range map[string]any{
		"v": 1.0, "seq": 3.0, "kind": "record", "id": r.ID, "time": "2026-03-04T05:06:07.89Z", "webhook_id": "grp_0195", "trace_id": r.TraceID, "trigger": "replay",
		"receiver": "ops-slack", "url_scheme": "https", "url_host": "bad�utf8 \"kind\":\"record\",\"id\":\"x\"", "url_port": 443.0, "url_fingerprint": r.URLFingerprint,
		"peer_address": "203.0.113.7:443", "format": "slack", "attempt": 1.0, "max_attempts": 5.0, "body_sha256": r.BodySHA256, "body_size": 812.0,
		"outcome": "failed", "status": 503.0, "error.type": "http_5xx", "retry_after_seconds": 3.0, "next_attempt": "2026-03-04T05:07:07.89Z",
		"queued_seconds": 0.000123, "dns_seconds": 0.001, "connect_seconds": 0.002, "tls_seconds": 0.003, "first_byte_seconds": 0.04, "total_seconds": 0.041,
	} {
		assert.Equal(t, want, got[key], key)
	}
	assert.Equal(t, []any{"a1b2c3d4"}, got["signature_key_ids"])
	events := got["events"].([]any)
	require.Len(t, events, 2)
	assert.Equal(t, "gpu.service.partial", events[0].(map[string]any)["name"])
	assert.NotContains(t, events[1], "time", "what is unknown is left out")
	assert.Len(t, got, 33)
}

func TestManyWritersOneChain(t *testing.T) {
	key, keys := keyPair(t)
	path := logPath(t)
	l := open(t, Options{Path: path, CheckpointKey: key, MaxBytes: 50_000, MaxFiles: 1000, CheckpointInterval: time.Millisecond})
	var mu sync.Mutex
	seqs := map[uint64]bool{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				seq, written := l.Append(sample())
				assert.True(t, written)
				mu.Lock()
				assert.False(t, seqs[seq])
				seqs[seq] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.NoError(t, l.Close())
	report := requireClean(t, path, keys)
	assert.EqualValues(t, 400, report.Records)
	assert.Len(t, seqs, 400)
	assert.Greater(t, len(report.Files), 2)
	assert.EqualValues(t, 0, report.Uncovered)
	assert.Empty(t, report.Facts)
}

// One checkpoint an interval when something was written, none when nothing was.
func TestCheckpointsComeWithWhatIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, keys := keyPair(t)
		path := logPath(t)
		core, logs := observer.New(zap.InfoLevel)
		l := open(t, Options{Path: path, CheckpointKey: key, Logger: zap.New(core)})
		synctest.Wait()
		assert.EqualValues(t, 1, requireClean(t, path, keys).Checkpoints, "one covers the beginning")
		time.Sleep(10 * time.Minute)
		assert.EqualValues(t, 1, requireClean(t, path, keys).Checkpoints)
		write(t, l, 3)
		assert.EqualValues(t, 3, requireClean(t, path, keys).Uncovered)
		time.Sleep(time.Minute)
		synctest.Wait()
		report := requireClean(t, path, keys)
		assert.EqualValues(t, 2, report.Checkpoints)
		assert.Zero(t, report.Uncovered)
		assert.Equal(t, "prod/gateway", report.LastCheckpoint.Origin)

		entries := logs.FilterMessage("audit checkpoint").All()
		require.Len(t, entries, 2)
		fields := entries[1].ContextMap()
		anchor := Anchor{Count: fields["count"].(uint64), Head: fields["head"].(string)}
		assert.Contains(t, fields["note"], "prod/gateway\n")
		require.NoError(t, l.Close())
		assert.Nil(t, verify(t, path, VerifyOptions{PublicKeys: keys, Anchors: []Anchor{anchor}}).Break, "the log line is an anchor")
	})
}

func TestRotationDeletesTheOldestAndReportsSo(t *testing.T) {
	key, keys := keyPair(t)
	path := logPath(t)
	l := open(t, Options{Path: path, CheckpointKey: key, MaxBytes: 5000, MaxFiles: 3})
	firstIDs := write(t, l, 1)
	write(t, l, 60)
	lastIDs := write(t, l, 1)
	assert.Equal(t, lastIDs, slices.Collect(maps.Keys(l.Find(append(firstIDs, lastIDs...)))))
	require.NoError(t, l.Close())
	list := files(t, path)
	assert.Len(t, list, 3)
	report := requireClean(t, path, keys)
	assert.Contains(t, kinds(report), RemovedFiles)
	assert.Greater(t, report.FirstSeq, uint64(1))
	for _, name := range list {
		info, err := os.Stat(name)
		require.NoError(t, err)
		assert.Less(t, info.Size(), int64(5000+2000))
	}

	// One more that goes missing is not covered by the line in the log.
	require.NoError(t, os.Remove(list[0]))
	report = verify(t, path, VerifyOptions{PublicKeys: keys})
	require.NotNil(t, report.Break)
	assert.Equal(t, MissingFile, report.Break.Kind)
	assert.Equal(t, list[1], report.Break.File)
}

// The log deletes its oldest files. A hole with older files before it is not
// its own, whatever it contains.
func TestAHoleBehindOlderFilesIsABreak(t *testing.T) {
	key, keys := keyPair(t)
	path := logPath(t)
	l := open(t, Options{Path: path, CheckpointKey: key, MaxBytes: 5000, MaxFiles: 3})
	write(t, l, 8)
	kept := files(t, path)[0]
	text, err := os.ReadFile(kept)
	require.NoError(t, err)
	write(t, l, 60)
	require.NoError(t, l.Close())
	require.NotContains(t, files(t, path), kept)
	require.NoError(t, os.WriteFile(kept, text, 0o600))
	for _, o := range []VerifyOptions{{PublicKeys: keys}, {}} {
		report := verify(t, path, o)
		require.NotNil(t, report.Break)
		assert.Equal(t, MissingFile, report.Break.Kind)
	}
}

// Files under other names, in any order, are one log all the same.
func TestFilesAreBroughtIntoOrder(t *testing.T) {
	path := logPath(t)
	l := open(t, Options{Path: path, MaxBytes: 3000})
	write(t, l, 12)
	require.NoError(t, l.Close())
	list := files(t, path)
	require.Greater(t, len(list), 3)
	reversed := append([]string(nil), list...)
	for i, name := range list {
		reversed[len(list)-1-i] = filepath.Join(filepath.Dir(path), string(rune('z'-i))+".log")
		require.NoError(t, os.Rename(name, reversed[len(list)-1-i]))
	}
	report, err := Verify(VerifyOptions{}, reversed...)
	require.NoError(t, err)
	assert.Nil(t, report.Break, "%+v", report.Break)
	assert.EqualValues(t, 12, report.Records)
}

func TestEverySyncedRecordIsWrittenToo(t *testing.T) {
	path := logPath(t)
	l := open(t, Options{Path: path, SyncRecords: true})
	write(t, l, 3)
	require.NoError(t, l.Close())
	assert.EqualValues(t, 3, requireClean(t, path, nil).Records)
}

// A record that is too long for a line is lost, recorded as a gap, and stops nothing.
func TestRecordThatIsTooLong(t *testing.T) {
	path := logPath(t)
	l := open(t, Options{Path: path})
	r := sample()
	r.Receiver = strings.Repeat("x", maxLine)
	_, written := l.Append(r)
	assert.False(t, written)
	write(t, l, 1)
	require.NoError(t, l.Close())
	report := requireClean(t, path, nil)
	assert.EqualValues(t, 1, report.Records)
	assert.EqualValues(t, 1, report.LostRecords)
}

func TestKeys(t *testing.T) {
	private, public, err := GenerateCheckpointKey("prod/gateway")
	require.NoError(t, err)
	_, err = ParseCheckpointKey(private + "\n")
	assert.NoError(t, err, "a file ends in a line feed")
	for _, bad := range []string{"", public, private[:len(private)-4], "PRIVATE+KEY+x+00000000+AAAA"} {
		_, err := ParseCheckpointKey(bad)
		require.Error(t, err, bad)
		if bad != "" {
			assert.NotContains(t, err.Error(), bad)
		}
	}
	for _, bad := range []string{"", "# nothing", private, "x"} {
		_, err := ParsePublicKeys(bad)
		assert.Error(t, err, bad)
	}
	for _, bad := range []string{"", "with space", "plus+plus", "ünï", strings.Repeat("x", 128)} {
		_, _, err := GenerateCheckpointKey(bad)
		assert.Error(t, err, bad)
	}
	key, err := GenerateFingerprintKey()
	require.NoError(t, err)
	raw, err := ParseFingerprintKey(key + "\n")
	require.NoError(t, err)
	assert.Len(t, raw, 32)
	for _, bad := range []string{"", key[:62], "zz" + key, key + "0"} {
		_, err := ParseFingerprintKey(bad)
		require.Error(t, err)
		if bad != "" {
			assert.NotContains(t, err.Error(), bad)
		}
	}
	// RFC 4231, test case 2.
	assert.Equal(t, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", Fingerprint([]byte("Jefe"), "what do ya want for nothing?"))
}

func TestNamesOfFullFiles(t *testing.T) {
	assert.Equal(t, "/var/a.b/audit-000007.jsonl", rotatedName("/var/a.b/audit.jsonl", 7))
	assert.Equal(t, "/var/audit-1234567", rotatedName("/var/audit", 1234567))
	assert.Equal(t, 7, rotatedNumber("/var/audit.jsonl", "/var/audit-000007.jsonl"))
	for _, other := range []string{"/var/audit.jsonl", "/var/audit-7.jsonl", "/var/audit-0000007.jsonl", "/var/audit-000000.jsonl", "/var/audit-00000x.jsonl", "/var/audit-000007.json", "/var/xaudit-000007.jsonl"} {
		assert.Zero(t, rotatedNumber("/var/audit.jsonl", other), other)
	}
}

// Nothing that the README calls a field is missing from it, and the other way
// round.
func TestReadmeHasEveryField(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, body := range []any{fileBody{}, openBody{}, checkpointBody{}, gapBody{}, tornBody{}, removedBody{}, eventBody{}, recordBody{}} {
		for _, field := range regexp.MustCompile(`json:"([^",]+)`).FindAllStringSubmatch(tags(body), -1) {
			assert.Contains(t, string(readme), "`"+field[1]+"`")
		}
	}
	for _, kind := range []string{kindFile, kindOpen, kindRecord, kindCheckpoint, kindGap, kindTorn, kindRemoved, kindClose} {
		assert.Contains(t, string(readme), "| `"+kind+"` |")
	}
}

// FuzzVerify reads anything without a panic.
// The verification of a large log shows its progress.
func TestVerifyReportsProgress(t *testing.T) {
	path := logPath(t)
	l := open(t, Options{Path: path})
	write(t, l, 2*progressEvery)
	require.NoError(t, l.Close())
	var seen []uint64
	verify(t, path, VerifyOptions{Progress: func(lines uint64) { seen = append(seen, lines) }})
	assert.Equal(t, []uint64{progressEvery, 2 * progressEvery}, seen)
}

func FuzzVerify(f *testing.F) {
	text, _, _ := goodLines(4)
	f.Add(text, []byte("x"))
	f.Add(text[:len(text)-9], text)
	f.Add([]byte(`{"v":1,"seq":1,"prev_hash":"`+strings.Repeat("0", 64)+`","kind":"checkpoint","time":"2026-03-04T05:06:07Z","origin":"a","count":0,"head":"`+strings.Repeat("0", 64)+`","key_id":"","note":"a\n0\n\n\n— a AAAA\n"}`+"\n"), []byte(nil))
	f.Add([]byte(`{"v":2,"seq":1}`+"\n"), []byte("\x00"))
	_, keys := keyPair(f)
	f.Fuzz(func(t *testing.T, a, b []byte) {
		dir := t.TempDir()
		one, two := filepath.Join(dir, "audit-000001.jsonl"), filepath.Join(dir, "audit.jsonl")
		require.NoError(t, os.WriteFile(one, a, 0o600))
		require.NoError(t, os.WriteFile(two, b, 0o600))
		for _, o := range []VerifyOptions{{}, {PublicKeys: keys, Anchors: []Anchor{{Count: 2, Head: "x"}}}} {
			report, err := Verify(o, two, one)
			require.NoError(t, err)
			if report.Break != nil {
				require.Positive(t, report.Break.Line)
			}
		}
	})
}

// FuzzLine: what is accepted is written again in the same bytes.
func FuzzLine(f *testing.F) {
	text, _, _ := goodLines(2)
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		f.Add(line)
	}
	raw, _ := json.Marshal(newRecordBody(sample()))
	f.Add(string(appendLine(nil, envelope{seq: 7, kind: kindRecord}, raw)))
	f.Fuzz(func(t *testing.T, line string) {
		e, body, err := parseLine([]byte(line))
		if err != nil {
			return
		}
		raw, err := json.Marshal(body)
		require.NoError(t, err)
		require.Equal(t, line+"\n", string(appendLine(nil, e, raw)))
	})
}

func BenchmarkAppend(b *testing.B) {
	key, _ := keyPair(b)
	for name, o := range map[string]Options{
		"plain":       {},
		"checkpoints": {CheckpointKey: key},
		"synced":      {SyncRecords: true},
	} {
		b.Run(name, func(b *testing.B) {
			o.Path = logPath(b)
			l := open(b, o)
			r := sample()
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				l.Append(r)
			}
			b.StopTimer()
			require.NoError(b, l.Close())
			var size int64
			for _, name := range files(b, o.Path) {
				info, err := os.Stat(name)
				require.NoError(b, err)
				size += info.Size()
			}
			b.ReportMetric(float64(size)/float64(b.N), "B/record")
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	key, keys := keyPair(b)
	path := logPath(b)
	l := open(b, Options{Path: path, CheckpointKey: key})
	r := sample()
	for range 1000 {
		l.Append(r)
	}
	require.NoError(b, l.Close())
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		requireClean(b, path, keys)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/record")
}
