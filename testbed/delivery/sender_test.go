// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// collectorOf counts the events that reach it and answers with what a function
// returns; 0 breaks the connection off.
func collectorOf(t *testing.T, status func() int) (url string, seen func() map[string]int) {
	t.Helper()
	var mu sync.Mutex
	events := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			ResourceLogs []struct {
				ScopeLogs []struct {
					LogRecords []struct {
						EventName  string
						Attributes []struct {
							Key   string
							Value struct{ StringValue string }
						}
					}
				}
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			assert.Error(t, r.Context().Err(), "%v, and the sender has not gone", err)
			return
		}
		mu.Lock()
		for _, record := range body.ResourceLogs[0].ScopeLogs[0].LogRecords {
			assert.NotEmpty(t, record.EventName)
			for _, a := range record.Attributes {
				if a.Key == "gpu.event.id" {
					events[a.Value.StringValue]++
				}
			}
		}
		code := status()
		mu.Unlock()
		if code == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(code)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(events) // a request may still arrive after its sender has gone
	}
}

func newSender(url string, events int) *sender {
	r := rand.New(rand.NewPCG(1, 2))
	return &sender{url: url, rand: r, events: newEvents(r, events), mayGo: func(int) bool { return true }}
}

// Every event is sent until it is acknowledged, and every post of it that may
// have reached the collector counts.
func TestSenderRepeats(t *testing.T) {
	answers := []int{0, 503, 200, 500}
	n := 0
	url, seen := collectorOf(t, func() int {
		n++
		if n > len(answers) {
			return 200
		}
		return answers[n-1]
	})
	s := newSender(url, 500)
	s.send(t.Context())

	assert.Equal(t, 500, s.count())
	posts, repeated := seen(), 0
	require.Len(t, posts, 500)
	for _, event := range s.result() {
		assert.True(t, event.Acknowledged)
		assert.Equal(t, posts[event.ID], event.Posts)
		if event.Posts > 1 {
			repeated++
		}
	}
	assert.Positive(t, repeated)
}

// The sender waits for leave, and what was not sent is not acknowledged.
func TestSenderWaits(t *testing.T) {
	url, seen := collectorOf(t, func() int { return 200 })
	s := newSender(url, 500)
	s.mayGo = func(acknowledged int) bool { return acknowledged < 100 }
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { defer close(done); s.send(ctx) }()
	require.Eventually(t, func() bool { return s.count() >= 100 }, time.Minute, time.Millisecond)
	cancel()
	<-done
	acknowledged := 0
	for _, event := range s.result() {
		if event.Acknowledged {
			acknowledged++
		}
	}
	assert.Equal(t, s.count(), acknowledged)
	assert.Less(t, acknowledged, 500)
	assert.LessOrEqual(t, acknowledged, len(seen()))
}

// A collector that is not there got nothing.
func TestSenderRefused(t *testing.T) {
	ports, err := collector.Free(1)
	require.NoError(t, err)
	s := newSender("http://"+address(ports[0]), 10)
	require.Error(t, s.post(t.Context(), http.DefaultClient, 0, 10))
	for _, event := range s.result() {
		assert.Zero(t, event.Posts)
		assert.False(t, event.Acknowledged)
	}
}

func TestEvents(t *testing.T) {
	make10 := func(seed uint64) []Event { return newEvents(rand.New(rand.NewPCG(seed, 2)), 10) }
	events := make10(1)
	assert.Equal(t, events, make10(1))
	assert.NotEqual(t, events, make10(2))
	ids := map[string]bool{}
	for _, e := range events {
		assert.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$`, e.ID)
		ids[e.ID] = true
	}
	assert.Len(t, ids, 10)
}
