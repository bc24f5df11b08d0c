// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// kinds are what events are about, in turn; severities are OpenTelemetry's
// numbers.
var kinds = []struct {
	name     string
	severity int
}{
	{"gpu.xid", severityError},
	{"gpu.service.partial", severityWarn},
	{"gpu.idle_held", severityInfo},
	{"gpu.node.lost", severityError},
}

const (
	severityInfo  = 9
	severityWarn  = 13
	severityError = 17
)

const (
	batchMost  = 64 // events in one post
	senders    = 4  // posts at a time
	postTime   = 10 * time.Second
	repostTime = 50 * time.Millisecond
)

// newEvents makes the events of a run. Every fourth has an event key of its
// own; the others share theirs, which keeps them in order.
func newEvents(r *rand.Rand, n int) []Event {
	events := make([]Event, n)
	for i := range events {
		kind := kinds[i%len(kinds)]
		events[i] = Event{
			ID:       fmt.Sprintf("%08x-%04x-7%03x-8%03x-%012x", r.Uint32(), r.Uint32()&0xffff, r.Uint32()&0xfff, r.Uint32()&0xfff, r.Uint64()&0xffffffffffff),
			Name:     kind.name,
			Severity: kind.severity,
		}
	}
	return events
}

// sender sends events to a collector that may be gone at any moment, until each
// is acknowledged.
type sender struct {
	url string // of the OTLP receiver
	// mayGo reports whether to send more, having so many acknowledged.
	mayGo func(acknowledged int) bool

	posting atomic.Int32 // posts on their way

	mu           sync.Mutex
	events       []Event
	next         int // first that was never posted
	acknowledged int
	rand         *rand.Rand // of the batches' sizes
}

// send returns when all events are acknowledged or ctx is over.
func (s *sender) send(ctx context.Context) {
	client := &http.Client{Timeout: postTime}
	defer client.CloseIdleConnections()
	var posts sync.WaitGroup
	for range senders {
		posts.Go(func() {
			for ctx.Err() == nil {
				first, end := s.take()
				if first == end {
					return
				}
				for !s.mayGo(s.count()) && sleep(ctx, repostTime/10) {
				}
				for s.post(ctx, client, first, end) != nil && sleep(ctx, repostTime) {
				}
			}
		})
	}
	posts.Wait()
}

// take returns the bounds of a batch that no other worker sends.
func (s *sender) take() (first, end int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = s.next
	s.next = min(len(s.events), first+1+s.rand.IntN(batchMost))
	return first, s.next
}

// count is how many are acknowledged.
func (s *sender) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acknowledged
}

// result is what is known of the events now.
func (s *sender) result() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Event(nil), s.events...)
}

// post sends a batch once. Only 200 acknowledges it. It counts as a post if there
// was a connection on which it may have reached the collector.
func (s *sender) post(ctx context.Context, client *http.Client, first, end int) error {
	s.mu.Lock()
	body := payload(s.events[first:end], first)
	s.mu.Unlock()
	s.posting.Add(1)
	defer s.posting.Add(-1)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i := first; i < end; i++ {
			s.events[i].Posts++
		}
	}})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/logs", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	// Without its whole answer it is not acknowledged: then it is sent again.
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the OTLP receiver answers %s", resp.Status)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := first; i < end; i++ {
		s.events[i].Acknowledged = true
	}
	s.acknowledged += end - first
	return nil
}

// payload is an OTLP request of these events, the first of them the n-th of
// all.
func payload(events []Event, n int) []byte {
	type m = map[string]any
	text := func(key, value string) m { return m{"key": key, "value": m{"stringValue": value}} }
	now := strconv.FormatInt(time.Now().UnixNano(), 10)
	records := make([]m, len(events))
	for i, e := range events {
		key := "shared/" + strconv.Itoa((n+i)%97)
		if (n+i)%4 == 0 {
			key = "own/" + e.ID
		}
		records[i] = m{
			"timeUnixNano": now, "severityNumber": e.Severity, "eventName": e.Name,
			"body": m{"stringValue": "Event " + strconv.Itoa(n+i) + " of the delivery test."},
			"attributes": []m{
				text("gpu.event.id", e.ID), text("gpu.event.key", key), text("gpu.event.state", "raised"),
			},
		}
	}
	body, err := json.Marshal(m{"resourceLogs": []m{{
		"resource":  m{"attributes": []m{text("k8s.cluster.name", "test"), text("k8s.node.name", "gpu-node-1")}},
		"scopeLogs": []m{{"logRecords": records}},
	}}})
	if err != nil {
		panic(err) // texts and numbers alone
	}
	return body
}

// sleep returns false if ctx ends meanwhile.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
