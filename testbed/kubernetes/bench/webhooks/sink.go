// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

// manner is what a receiver does.
type manner int

const (
	well    manner = iota // answers 204
	refuses               // 503 during the outage
	hangs                 // no answer during it
	cuts                  // every third request is reset after it was read
)

// hooks are webhook receivers, which keep account of what they see.
type hooks struct {
	list   []*hook
	closed chan struct{}

	mu       sync.Mutex
	outage   time.Time // its end
	arrivals []arrival
	requests int
}

type hook struct {
	name, url string
	manner    manner
	requests  int
	server    *http.Server
}

// newHooks listens.
func newHooks(manners ...manner) (*hooks, error) {
	h := &hooks{closed: make(chan struct{})}
	for i, manner := range manners {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			h.close()
			return nil, err
		}
		one := &hook{name: fmt.Sprintf("receiver-%d", i), url: fmt.Sprintf("http://%s/hook", listener.Addr()), manner: manner}
		one.server = &http.Server{
			Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.serve(one, w, r) }),
			ReadHeaderTimeout: time.Minute,
			ErrorLog:          log.New(io.Discard, "", 0), // senders that are killed
		}
		h.list = append(h.list, one)
		go func() { _ = one.server.Serve(listener) }() // ends with close
	}
	return h, nil
}

func (h *hooks) close() {
	close(h.closed)
	for _, one := range h.list {
		_ = one.server.Close()
	}
}

// begin begins the outage.
func (h *hooks) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.outage = time.Now().Add(faultOutage)
}

func (h *hooks) serve(one *hook, w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed meanwhile
	}
	ids, err := idsOf(r.Header, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	h.requests++
	one.requests++
	down := at.Before(h.outage)
	status := http.StatusNoContent
	switch {
	case one.manner == refuses && down:
		status = http.StatusServiceUnavailable
	case one.manner == hangs && down, one.manner == cuts && one.requests%3 == 0:
		status = 0
	}
	// Before the sender can know it.
	for _, id := range ids {
		h.arrivals = append(h.arrivals, arrival{hook: one.name, id: id, at: at, status: status})
	}
	h.mu.Unlock()
	switch {
	case status != 0:
		w.WriteHeader(status)
	case one.manner == hangs:
		select {
		case <-r.Context().Done():
		case <-h.closed:
		}
	default:
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err) // HTTP/1 on TCP
		}
		_ = c.(*net.TCPConn).SetLinger(0) // a reset
		_ = c.Close()
	}
}

// idsOf are the ids of the notices in a request: that of Standard Webhooks, or
// the labels of Alertmanager's alerts.
func idsOf(header http.Header, body []byte) ([]string, error) {
	if id := header.Get("webhook-id"); id != "" {
		return []string{id}, nil
	}
	var message struct {
		Alerts []struct {
			Labels map[string]string `json:"labels"`
		} `json:"alerts"`
	}
	if err := json.Unmarshal(body, &message); err != nil {
		return nil, err
	}
	var ids []string
	for _, a := range message.Alerts {
		ids = append(ids, a.Labels[idLabel])
	}
	if len(ids) == 0 {
		return nil, errors.New("neither a webhook-id nor alerts")
	}
	return ids, nil
}

func (h *hooks) names() (names []string) {
	for _, one := range h.list {
		names = append(names, one.name)
	}
	return names
}

// well are the names of those that are.
func (h *hooks) well() map[string]bool {
	names := map[string]bool{}
	for _, one := range h.list {
		names[one.name] = one.manner == well
	}
	return names
}

// seen is what has arrived.
func (h *hooks) seen() []arrival {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]arrival(nil), h.arrivals...)
}

// count is how many requests there were.
func (h *hooks) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.requests
}

// forget forgets what has arrived.
func (h *hooks) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.arrivals, h.requests = nil, 0
}

// last is when the n-th receiver got what it had not got before the last time.
func (h *hooks) last(n int) (last time.Time) {
	got := map[string]bool{}
	for _, a := range h.seen() {
		if a.hook == h.list[n].name && a.status/100 == 2 && !got[a.id] {
			got[a.id] = true
			last = a.at
		}
	}
	return last
}

// has reports whether all of it was delivered to all.
func (h *hooks) has(sent *handing) bool {
	v := judge(sent.times(), h.names(), nil, h.seen(), nil)
	return v.delivered == v.pairs
}

// await waits until all of it is delivered.
func (h *hooks) await(ctx context.Context, sent *handing, longest time.Duration) error {
	for end := time.Now().Add(longest); !h.has(sent); {
		if time.Now().After(end) {
			return fmt.Errorf("not all was delivered within %v", longest)
		}
		if err := frame.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
