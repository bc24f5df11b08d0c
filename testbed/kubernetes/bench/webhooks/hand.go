// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

// notice is what is handed over: an event to one, an alert to the other.
type notice struct {
	id, name string
	at       time.Time
}

// handing is notices on their way to a notifier.
type handing struct {
	done chan struct{} // closed when all are acknowledged, or never will be

	mu    sync.Mutex
	count int
	taken []notice
}

// repost is how long the sender waits where a notice was not taken.
const repost = 100 * time.Millisecond

// hand hands notices over at an even pace, each until it is acknowledged.
func hand(ctx context.Context, n notifier, count, rate int, name string) *handing {
	h := &handing{done: make(chan struct{}), count: count}
	go func() {
		defer close(h.done)
		begin := time.Now()
		var posts sync.WaitGroup
		defer posts.Wait()
		for i := range count {
			// By the clock, and not so much after the last: a busy machine must not
			// make the whole longer.
			if frame.Sleep(ctx, time.Until(begin.Add(time.Duration(i)*time.Second/time.Duration(rate)))) != nil {
				return
			}
			one := notice{id: uuid.NewString(), name: name, at: time.Now()}
			posts.Go(func() {
				for n.post(ctx, []notice{one}) != nil {
					if frame.Sleep(ctx, repost) != nil {
						return
					}
				}
				h.mu.Lock()
				defer h.mu.Unlock()
				h.taken = append(h.taken, one)
			})
		}
	}()
	return h
}

// over reports whether all are acknowledged.
func (h *handing) over() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.taken) == h.count
}

// times are those at which what is acknowledged was handed over first, by id.
func (h *handing) times() map[string]time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	times := make(map[string]time.Time, len(h.taken))
	for _, one := range h.taken {
		times[one.id] = one.at
	}
	return times
}

// repeat hands over again what lasts, every so often, until ctx ends.
func (h *handing) repeat(ctx context.Context, n notifier, every time.Duration) {
	sent := map[string]time.Time{} // when last
	for frame.Sleep(ctx, time.Second) == nil {
		var due []notice
		h.mu.Lock()
		for _, one := range h.taken {
			last, ok := sent[one.id]
			if !ok {
				last = one.at
			}
			if time.Since(last) >= every {
				due = append(due, one)
			}
		}
		h.mu.Unlock()
		if len(due) == 0 || n.post(ctx, due) != nil {
			continue // those that were not taken are due again
		}
		for _, one := range due {
			sent[one.id] = time.Now()
		}
	}
}
