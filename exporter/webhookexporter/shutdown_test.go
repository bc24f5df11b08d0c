// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// stuck answers no request before it is given up.
type stuck struct{}

func (stuck) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func (stuck) CloseIdleConnections() {}

func TestShutdownDeliversWhatIsQueued(t *testing.T) {
	server := newHook(t, nil)
	cfg := to(server.URL)
	cfg.Workers = 2
	h := newHarness(t, only(cfg))
	const events = 100
	logs := plog.NewLogs()
	for i := range events {
		addPartial(logs, fmt.Sprint(i), names.EventRaised, plog.SeverityNumberWarn)
	}
	require.NoError(t, h.Start(context.Background(), componenttest.NewNopHost()))
	h.send(logs)
	require.NoError(t, h.Shutdown(context.Background()))
	assert.Len(t, server.received(), events)
	assert.Len(t, h.records, events)
	require.NoError(t, h.Shutdown(context.Background()), "twice is once")
}

func TestShutdownAuditsWhatItBreaksOff(t *testing.T) {
	entered := make(chan struct{}, 1)
	server := newHook(t, func(_ http.ResponseWriter, r *http.Request) { entered <- struct{}{}; <-r.Context().Done() })
	cfg := to(server.URL)
	cfg.Workers = 1
	h := startHarness(t, only(cfg))
	for i := range 3 {
		h.send(partial(fmt.Sprint(i), names.EventRaised))
	}
	<-entered
	shutdownNow(t, h)
	require.Len(t, h.records, 3, "all are audited when Shutdown returns")
	for i := range 3 {
		rec := h.record()
		assert.Equal(t, fmt.Sprint(i), rec.Events[0].ID)
		assert.Equal(t, audit.ErrorShutdown, rec.ErrorType)
		if i == 0 {
			assert.Equal(t, audit.Failed, rec.Outcome, "it was on its way")
			assert.Equal(t, 1, rec.Attempt)
		} else {
			assert.Equal(t, audit.Dropped, rec.Outcome)
			assert.Zero(t, rec.Attempt)
		}
	}

	h.send(partial("late", names.EventRaised))
	rec := h.record()
	assert.Equal(t, audit.Dropped, rec.Outcome)
	assert.Equal(t, audit.ErrorShutdown, rec.ErrorType)
}

// A peer that accepts and sends nothing must not delay the shutdown, nor keep its
// connection beyond it.
func TestShutdownBreaksOffTLSHandshake(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	cfg := to("https://" + listener.Addr().String())
	cfg.Timeout = time.Hour
	h := startHarness(t, only(cfg))
	h.send(partial("id", names.EventRaised))
	conn, err := listener.Accept()
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1)) // the handshake has begun
	require.NoError(t, err)
	shutdownNow(t, h)
	assert.Equal(t, audit.ErrorShutdown, h.record().ErrorType)

	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	_, err = io.Copy(io.Discard, conn)
	assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection is still open")
}

// The same for a name server that does not answer.
func TestShutdownBreaksOffNameLookup(t *testing.T) {
	entered, left := make(chan struct{}, 16), make(chan struct{}, 16)
	cfg := to("https://hooks.example.test")
	cfg.Timeout = time.Hour
	h := startHarness(t, only(cfg), func(_ *Config, env *environment) {
		env.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			entered <- struct{}{}
			<-ctx.Done()
			left <- struct{}{}
			return nil, ctx.Err()
		}}
	})
	h.send(partial("id", names.EventRaised))
	<-entered
	shutdownNow(t, h)
	assert.Equal(t, audit.ErrorShutdown, h.record().ErrorType)
	select {
	case <-left:
	case <-time.After(patience):
		t.Fatal("the lookup goes on")
	}
}

// shutdownNow shuts down without any time to deliver.
func shutdownNow(t *testing.T, h *harness) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, h.Shutdown(ctx))
}

func TestShutdownWithoutDeadlineGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := to("https://hooks.example.com")
		cfg.Timeout = time.Hour
		h := newHarness(t, only(cfg), via(stuck{}))
		require.NoError(t, h.Start(context.Background(), componenttest.NewNopHost()))
		h.send(partial("id", names.EventRaised))
		synctest.Wait()
		start := time.Now()
		require.NoError(t, h.Shutdown(context.Background()))
		assert.Equal(t, 10*time.Second, time.Since(start))
		assert.Equal(t, audit.ErrorShutdown, h.record().ErrorType)
	})
}

func TestDefaultTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, only(to("https://hooks.example.com")), via(stuck{}))
		require.NoError(t, h.Start(context.Background(), componenttest.NewNopHost()))
		h.send(partial("first", names.EventRaised))
		h.send(partial("second", names.EventRaised)) // same key: waits for the first
		for queued := range 2 {
			rec := <-h.records
			assert.Equal(t, audit.ErrorTimeout, rec.ErrorType)
			assert.Equal(t, 30*time.Second, rec.Durations.Total)
			assert.Equal(t, time.Duration(queued)*30*time.Second, rec.Durations.Queued)
		}
	})
}

// Consumers, workers and the end meet in every order; every delivery is audited
// once.
func TestNothingIsLostWhileStopping(t *testing.T) {
	server := newHook(t, nil)
	cfg := to(server.URL)
	cfg.QueueSize = 5
	h := startHarness(t, only(cfg))
	const senders, events = 4, 50
	done := make(chan struct{})
	for range senders {
		go func() {
			defer func() { done <- struct{}{} }()
			for range events {
				_ = h.ConsumeLogs(context.Background(), partial(eventrecord.NewID(), names.EventRaised))
			}
		}()
	}
	require.NoError(t, h.Shutdown(context.Background()))
	for range senders {
		<-done
	}
	seen := map[string]int{}
	for range senders * events {
		seen[h.record().Events[0].ID]++
	}
	assert.Len(t, seen, senders*events)
	assert.Empty(t, h.records)
}
