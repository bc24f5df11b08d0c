// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
)

// eventLog plays a console that has events, the newest first.
type eventLog struct {
	mu     sync.Mutex
	events []consoleapi.Event
	page   int // how many one answer has; 0 is all
	broken bool
	query  string
	body   string
}

func (l *eventLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		w.WriteHeader(http.StatusBadGateway)
		_ = json.NewEncoder(w).Encode(consoleapi.Error{Text: "It cannot be.", Reason: consoleapi.UpstreamUnreachable})
		return
	}
	if r.Method == http.MethodPost {
		text, _ := io.ReadAll(r.Body)
		l.body = r.Header.Get("Content-Type") + " " + string(text)
		_ = json.NewEncoder(w).Encode(consoleapi.AcknowledgeAnswer{Event: l.events[0]})
		return
	}
	l.query = r.URL.RawQuery
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	answer := consoleapi.EventsAnswer{Events: l.events[from:], Total: len(l.events), Raised: 1, Notices: 1}
	if l.page > 0 && len(answer.Events) > l.page {
		answer.Events, answer.Next = answer.Events[:l.page], ref(strconv.Itoa(from+l.page))
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (l *eventLog) set(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
}

func story() *eventLog {
	at := time.Date(2026, 3, 4, 5, 6, 0, 0, time.Local)
	next := at.Add(time.Minute)
	return &eventLog{events: []consoleapi.Event{
		{ID: "e3", Name: "gpu.xid", State: ref("raised"), Notice: true, Active: true, Severity: ref("error"), Time: at.Add(2 * time.Second), Body: ref("GPU 3 reported XID 79.\x1b[31m"), Deliveries: []consoleapi.Delivery{
			{Receiver: "ops", Outcome: "failed", NextAttempt: &next}, {Receiver: "ops", Outcome: "succeeded"},
			{Receiver: "pager", Outcome: "dropped"}, {Receiver: "chat", Outcome: "failed", NextAttempt: &next},
		}},
		{ID: "e2", Name: "gpu.throttle", State: ref("cleared"), Severity: ref("info"), Time: at.Add(time.Second), Body: ref("It is over.")},
		{ID: "e1", Name: "gpu.xid", State: ref("raised"), Notice: true, Acknowledged: &next, Severity: ref("error"), Time: at, Body: ref("GPU 1 reported XID 31.")},
	}}
}

func TestEventsTable(t *testing.T) {
	t.Setenv(tokenVariable, "")
	log := story()
	server := httptest.NewServer(log)
	defer server.Close()
	code, out, errOut := ask("events", "-q", "xid", "--active", "--min-severity", "warn", "--endpoint", server.URL)
	require.Equal(t, exitOK, code, errOut)
	assert.Equal(t, `TIME                 STATE         EVENT         DELIVERIES                         WHAT
2026-03-04 05:06:02  ERROR         gpu.xid       1 of 3, chat waits, pager dropped  GPU 3 reported XID 79.[31m
2026-03-04 05:06:01  cleared       gpu.throttle  -                                  It is over.
2026-03-04 05:06:00  acknowledged  gpu.xid       -                                  GPU 1 reported XID 31.

3 of 3 events; raised conditions: 1; notices that need attention: 1
`, out)
	assert.Equal(t, "active=true&min_severity=warn&q=xid", log.query)
	_, out, _ = ask("events", "-n", "1", "--endpoint", server.URL)
	assert.Contains(t, out, "1 of 3 events")

	code, _, errOut = ask("events", "--check", "--endpoint", server.URL)
	assert.Equal(t, 1, code, errOut)
	log.set(func() { log.events[0], log.events[1] = log.events[1], log.events[0] })
	code, _, errOut = ask("events", "--check", "-n", "1", "--endpoint", server.URL)
	assert.Equal(t, 1, code, "one that is not shown: %s", errOut)
	log.set(func() { log.events = slices.Delete(log.events, 1, 2) })
	code, _, errOut = ask("events", "--check", "--endpoint", server.URL)
	assert.Equal(t, exitOK, code, errOut)

	code, out, errOut = ask("events", "--acknowledge", "e3", "--endpoint", server.URL)
	require.Equal(t, exitOK, code, errOut)
	assert.Equal(t, "acknowledged: It is over.\n", out)
	assert.Equal(t, `application/json {"event_id":"e3"}`, log.body)

	for _, wrong := range [][]string{{"--interval", "1ms"}, {"-n", "-1"}, {"--follow", "--check"}, {"--service", "chat"}, {"--cluster", "c1"}, {"llama"}} {
		code, _, errOut = ask(append([]string{"events", "--endpoint", server.URL}, wrong...)...)
		assert.Equal(t, 2, code, wrong)
		assert.Contains(t, errOut, "gpuctl", wrong)
	}
}

// --follow prints each event once, the oldest first, and outlives a console that
// is away.
func TestEventsFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := story()
		var out, errOut bytes.Buffer
		c := &consoleClient{endpoint: "http://localhost:1", output: "table", timeout: time.Minute}
		require.NoError(t, c.prepare(streams{out: &out, err: &errOut}))
		c.http = handlerTransport{log}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.follow(ctx, streams{out: &out, err: &errOut}, eventFilter{}, time.Second) }()
		synctest.Wait()
		assert.Equal(t, `2026-03-04 05:06:00  acknowledged gpu.xid: GPU 1 reported XID 31.
2026-03-04 05:06:01  cleared      gpu.throttle: It is over.
2026-03-04 05:06:02  ERROR        gpu.xid: GPU 3 reported XID 79.[31m
`, out.String())
		out.Reset()
		log.set(func() { log.broken = true })
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Contains(t, errOut.String(), "It cannot be.")
		one := log.events[0]
		one.ID, one.Time = "e4", one.Time.Add(time.Minute)
		log.set(func() { log.broken = false; log.events = append([]consoleapi.Event{one}, log.events...) })
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, "2026-03-04 05:07:02  ERROR        gpu.xid: GPU 3 reported XID 79.[31m\n", out.String())
		stop()
		assert.NoError(t, <-done)
	})
}

// --follow prints all of a burst, however few it began with, and nothing from
// before that.
func TestEventsFollowABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := story()
		log.page = 2
		var out bytes.Buffer
		c := &consoleClient{endpoint: "http://localhost:1", output: "table", timeout: time.Minute}
		require.NoError(t, c.prepare(streams{out: &out}))
		c.http = handlerTransport{log}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.follow(ctx, streams{out: &out}, eventFilter{newest: 1}, time.Second) }()
		synctest.Wait()
		require.Equal(t, 1, strings.Count(out.String(), "\n"))
		for i := range 5 {
			one := log.events[0]
			one.ID, one.Time = "b"+strconv.Itoa(i), one.Time.Add(time.Second)
			log.set(func() { log.events = append([]consoleapi.Event{one}, log.events...) })
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		assert.Equal(t, 6, strings.Count(out.String(), "\n"), out.String())
		stop()
		assert.NoError(t, <-done)
	})
}

// handlerTransport answers requests without a network.
type handlerTransport struct{ http.Handler }

func (h handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}
