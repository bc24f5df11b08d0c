// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreextension

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// statuses is a host that remembers what a component reported.
type statuses struct {
	host
	reported []string
}

func (s *statuses) Report(e *componentstatus.Event) {
	text := e.Status().String()
	if e.Err() != nil {
		text += ": " + e.Err().Error()
	}
	s.reported = append(s.reported, text)
}

// faulty is an engine with a disk that fails as a test configures it.
type faulty struct {
	notStarted
	err error
}

func (f *faulty) Append(_ context.Context, series []store.Series) (store.Appended, error) {
	if f.err != nil {
		return store.Appended{}, &store.Error{Kind: store.Internal, Err: f.err}
	}
	return store.Appended{Stored: len(series)}, nil
}

// lines are the log's messages of one level, with their reason.
func (r *running) lines(level zapcore.Level) []string {
	var lines []string
	for _, entry := range r.logs.FilterLevelExact(level).All() {
		if reason, found := entry.ContextMap()["reason"]; found {
			lines = append(lines, entry.ContextMap()["part"].(string)+" "+reason.(string))
		}
	}
	return lines
}

// watched is a started extension on a disk with so much free, and its host.
func watched(t *testing.T, free *int64) (*running, *statuses) {
	t.Helper()
	set, logs, tel := settings(t)
	g, err := newExtension(set, configured(t, nil))
	require.NoError(t, err)
	g.free = func(string) (int64, bool) { return *free, true }
	h := &statuses{}
	require.NoError(t, g.Start(t.Context(), h))
	t.Cleanup(func() { require.NoError(t, g.Shutdown(context.Background())) })
	return &running{g, logs, tel}, h
}

// New series that there is no room for are a problem for as long as they come, also
// while others are stored.
func TestSeriesThatThereIsNoRoomForAreAProblem(t *testing.T) {
	set, logs, tel := settings(t)
	g, err := newExtension(set, configured(t, func(c *Config) { c.MaxSeries = 2 }))
	require.NoError(t, err)
	var clock atomic.Int64
	clock.Store(time.Now().Unix())
	g.now = func() time.Time { return time.Unix(clock.Load(), 0) }
	h := &statuses{}
	require.NoError(t, g.Start(t.Context(), h))
	t.Cleanup(func() { require.NoError(t, g.Shutdown(context.Background())) })
	for range 50 {
		clock.Add(15)
		now := g.now()
		_, err := g.Append(t.Context(), []store.Series{sample("a", now, 1), sample("b", now, 1), sample("new", now, 1)})
		require.NoError(t, err)
		g.look()
	}
	require.Len(t, g.Problems(), 1)
	p := g.Problems()[0]
	assert.Equal(t, []any{store.Samples, store.SeriesLimit, int64(50), true}, []any{p.Part, p.Reason, p.Refused, p.Ended.IsZero()})
	assert.Contains(t, p.Detail, "are missing")
	assert.Contains(t, h.reported[len(h.reported)-1], "max_series")
	assert.Len(t, (&running{g, logs, tel}).lines(zapcore.ErrorLevel), 1)
}

func TestADiskThatFillsTwiceIsReportedTwice(t *testing.T) {
	free := int64(1 << 40)
	g, h := watched(t, &free)
	now := time.Now().Truncate(time.Second)
	g.write(t, sample("m", now, 1))
	assert.Empty(t, g.Problems())
	for occurrence := range 2 {
		free = 1 << 20
		g.look()
		require.Len(t, g.Problems(), 1, "also where nothing arrives")
		for range 3 {
			a, err := g.Append(t.Context(), []store.Series{sample("m", now.Add(time.Second), 1)})
			require.NoError(t, err)
			assert.Equal(t, map[store.Refusal]int{store.DiskFull: 1}, a.Refused)
		}
		p := g.Problems()[0]
		assert.Equal(t, []any{store.Samples, store.DiskFull, int64(3), true}, []any{p.Part, p.Reason, p.Refused, p.Ended.IsZero()})
		assert.Contains(t, p.Detail, g.config.Directory+" has less than 72 MiB free")
		assert.Contains(t, p.Detail, "make room")
		assert.Len(t, g.lines(zapcore.ErrorLevel), occurrence+1)
		r, err := g.Instant(t.Context(), "m", now)
		require.NoError(t, err)
		assert.Contains(t, r.Value.String(), "1", "what was stored before can be read")

		free = reserve + reserve/16
		g.look()
		assert.True(t, g.Problems()[0].Ended.IsZero(), "a little more than was needed is not enough")
		free = 1 << 40
		g.look()
		assert.False(t, g.Problems()[0].Ended.IsZero())
		g.write(t, sample("m", now.Add(time.Duration(occurrence+2)*time.Second), 2))
		assert.Len(t, g.lines(zapcore.InfoLevel), occurrence+1)
	}
	assert.Equal(t, []string{"samples disk_full", "samples disk_full"}, g.lines(zapcore.ErrorLevel))
	require.Len(t, h.reported, 4)
	for i, text := range h.reported {
		if i%2 == 0 {
			assert.Contains(t, text, "StatusRecoverableError: samples are not stored: disk_full, since ")
			assert.NotContains(t, text, g.config.Directory, "the health check is served to everyone")
		} else {
			assert.Equal(t, "StatusOK", text)
		}
	}
}

func TestAFaultOfTheDiskHasItsName(t *testing.T) {
	for err, want := range map[error]store.Refusal{
		syscall.ENOSPC: store.DiskFull, syscall.EDQUOT: store.DiskFull, syscall.EROFS: store.DiskReadOnly, syscall.EIO: store.WriteFailed, errors.New("closed"): store.WriteFailed,
	} {
		t.Run(err.Error(), func(t *testing.T) {
			free := int64(1 << 40)
			g, _ := watched(t, &free)
			require.NoError(t, g.engine.Close())
			engine := &faulty{err: err}
			g.engine = engine
			now := time.Now()
			for range 2 {
				_, failed := g.Append(t.Context(), []store.Series{sample("m", now, 1), sample("n", now, 1)})
				require.Error(t, failed)
			}
			g.look()
			p := g.Problems()
			require.Len(t, p, 1, "a look does not end what a write found")
			assert.Equal(t, []any{want, int64(4), true}, []any{p[0].Reason, p[0].Refused, p[0].Ended.IsZero()})
			assert.Contains(t, p[0].Detail, err.Error())
			assert.Equal(t, []string{"samples " + string(want)}, g.lines(zapcore.ErrorLevel))
			engine.err = nil
			g.write(t, sample("m", now, 1))
			assert.False(t, g.Problems()[0].Ended.IsZero())
			assert.Equal(t, []string{"samples " + string(want)}, g.lines(zapcore.InfoLevel))
		})
	}
}

// The log of events and deliveries has its own line, and its own end.
func TestALogThatCannotBeWrittenIsAProblem(t *testing.T) {
	free := int64(1 << 40)
	g, h := watched(t, &free)
	g.log.failed(store.Events, "write_failed", 2, syscall.ENOSPC)
	g.log.failed(store.Events, "write_failed", 1, syscall.ENOSPC)
	p := g.Problems()
	require.Len(t, p, 1)
	assert.Equal(t, []any{store.Events, store.DiskFull, int64(3)}, []any{p[0].Part, p[0].Reason, p[0].Refused})
	assert.Contains(t, p[0].Detail, "make room")
	g.write(t, sample("m", time.Now(), 1))
	assert.True(t, g.Problems()[0].Ended.IsZero(), "samples are another part")
	require.NoError(t, g.AppendEvents(t.Context(), []*store.Event{{ID: "1"}}))
	assert.False(t, g.Problems()[0].Ended.IsZero())
	assert.Equal(t, []string{"events disk_full"}, g.lines(zapcore.ErrorLevel))
	assert.Len(t, h.reported, 2)
}

// What is wrong with samples is not the store's fault, and not its status.
func TestTheSendersFaultIsNotTheStores(t *testing.T) {
	free := int64(1 << 40)
	g, h := watched(t, &free)
	_, err := g.Append(t.Context(), []store.Series{sample("m", time.Now().Add(time.Hour), 1)})
	require.NoError(t, err)
	p := g.Problems()
	require.Len(t, p, 1)
	assert.Equal(t, store.TooNew, p[0].Reason)
	assert.False(t, p[0].Fault())
	assert.Empty(t, h.reported)
}
