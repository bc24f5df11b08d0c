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

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/verify"
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
		anchor := verify.Anchor{Count: fields["count"].(uint64), Head: fields["head"].(string)}
		assert.Contains(t, fields["note"], "prod/gateway\n")
		require.NoError(t, l.Close())
		assert.Nil(t, verified(t, path, verify.Options{PublicKeys: keys, Anchors: []verify.Anchor{anchor}}).Break, "the log line is an anchor")
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
	assert.Contains(t, kinds(report), verify.RemovedFiles)
	assert.Greater(t, report.FirstSeq, uint64(1))
	for _, name := range list {
		info, err := os.Stat(name)
		require.NoError(t, err)
		assert.Less(t, info.Size(), int64(5000+2000))
	}

	// One more that goes missing is not covered by the line in the log.
	require.NoError(t, os.Remove(list[0]))
	report = verified(t, path, verify.Options{PublicKeys: keys})
	require.NotNil(t, report.Break)
	assert.Equal(t, verify.MissingFile, report.Break.Kind)
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
	for _, o := range []verify.Options{{PublicKeys: keys}, {}} {
		report := verified(t, path, o)
		require.NotNil(t, report.Break)
		assert.Equal(t, verify.MissingFile, report.Break.Kind)
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
	report, err := verify.Files(verify.Options{}, reversed...)
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
	r.Receiver = strings.Repeat("x", codec.MaxLine)
	_, written := l.Append(r)
	assert.False(t, written)
	write(t, l, 1)
	require.NoError(t, l.Close())
	report := requireClean(t, path, nil)
	assert.EqualValues(t, 1, report.Records)
	assert.EqualValues(t, 1, report.LostRecords)
}

// Nothing that the README calls a field is missing from it, and the other way
// round.
func TestReadmeHasEveryField(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, body := range []any{codec.FileBody{}, codec.OpenBody{}, codec.CheckpointBody{}, codec.GapBody{}, codec.TornBody{}, codec.RemovedBody{}, codec.EventBody{}, codec.RecordBody{}} {
		for _, field := range regexp.MustCompile(`json:"([^",]+)`).FindAllStringSubmatch(tags(body), -1) {
			assert.Contains(t, string(readme), "`"+field[1]+"`")
		}
	}
	for _, kind := range []string{codec.KindFile, codec.KindOpen, codec.KindRecord, codec.KindCheckpoint, codec.KindGap, codec.KindTorn, codec.KindRemoved, codec.KindClose} {
		assert.Contains(t, string(readme), "| `"+kind+"` |")
	}
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
