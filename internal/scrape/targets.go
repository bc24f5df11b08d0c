// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/phase"
)

// A scrape that the exporter refuses because others scrape it as well is made once more
// after retryAfter and up to retryJitter, within the interval.
const (
	retryAfter  = 5 * time.Second
	retryJitter = 2 * time.Second
)

// targets scrapes a set of exporters, which discovery may change.
type targets struct {
	scraper  *scraper
	interval time.Duration
	limit    int    // target_limit, 0 for none
	seed     string // differs between receivers with the same targets
	ctx      context.Context
	wg       sync.WaitGroup

	mu      sync.Mutex
	running map[string]*running
	rested  map[string]rested
}

type running struct {
	target *target
	stop   context.CancelFunc
	// What ends the series about the exporter, once it is no target any more.
	end atomic.Pointer[devicemap.Result]
}

// rested is a target that has gone. It is kept for two intervals: the pod of an
// exporter on the host's network comes back under the same address.
type rested struct {
	target *target
	until  time.Time
}

func newTargets(ctx context.Context, s *scraper, interval time.Duration, limit int, id string) *targets {
	return &targets{
		scraper: s, interval: interval, limit: limit, seed: phase.Seed(id), ctx: ctx,
		running: map[string]*running{}, rested: map[string]rested{},
	}
}

// set starts and stops scrapes so that those of the locations are left.
func (ts *targets) set(locations []location) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	now := time.Now()
	for url, r := range ts.rested {
		if now.After(r.until) {
			delete(ts.rested, url)
		}
	}
	wanted := make(map[string]location, len(locations))
	for _, at := range locations {
		wanted[at.url] = at
	}
	for url, r := range ts.running {
		// Another pod at the same address is another exporter on the same devices.
		if at, ok := wanted[url]; !ok || at != r.target.location {
			ts.stop(url, !ok || at.exporter.Node != r.target.exporter.Node, now)
		}
	}
	for url, at := range wanted {
		if ts.running[url] == nil {
			ts.start(at)
		}
	}
	ts.checkLimit(len(wanted))
}

func (ts *targets) start(at location) {
	t := ts.scraper.newTarget(at)
	if r, ok := ts.rested[at.url]; ok {
		delete(ts.rested, at.url)
		t = r.target.moved(at)
	}
	ctx, stop := context.WithCancel(ts.ctx)
	r := &running{target: t, stop: stop}
	ts.running[at.url] = r
	ts.wg.Go(func() {
		ts.loop(ctx, t)
		if end := r.end.Load(); end != nil { // behind the last scrape
			ts.scraper.deliver(t, *end)
		}
	})
}

// stop stops a target's scrapes. Where the exporter is gone and no other answers in
// its place, the series about it end.
func (ts *targets) stop(url string, gone bool, now time.Time) {
	r := ts.running[url]
	delete(ts.running, url)
	devices, unknown := r.target.leave()
	ts.scraper.telemetry.Devices.Add(ts.ctx, -int64(devices))
	ts.scraper.telemetry.Unknown.Add(ts.ctx, -int64(unknown))
	if md, ok := r.target.mapping.End(r.target.exporter, pcommon.NewTimestampFromTime(now)); ok && gone {
		r.end.Store(&devicemap.Result{Metrics: md})
	}
	r.stop()
	ts.rested[url] = rested{r.target, now.Add(2 * ts.interval)}
}

// checkLimit has every scrape fail while there are too many targets, as in
// Prometheus: whichever were left out, it would look as if they were not there.
func (ts *targets) checkLimit(n int) {
	if ts.limit == 0 || n <= ts.limit {
		ts.scraper.refuse.Store(nil)
		return
	}
	err := fmt.Errorf("target_%w: there are %d targets, and %d are allowed", pagetext.ErrLimit, n, ts.limit)
	ts.scraper.refuse.Store(&err)
}

// loop scrapes a target at every interval, at moments of its own.
func (ts *targets) loop(ctx context.Context, t *target) {
	next := time.Now().Add(phase.Offset(time.Now(), ts.interval, ts.seed+"\x00"+t.url))
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if ts.scraper.scrape(ctx, t, ts.interval > retryAfter+retryJitter) {
			timer.Reset(retryAfter + rand.N(retryJitter))
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			ts.scraper.scrape(ctx, t, false)
		}
		now := time.Now()
		for !next.After(now) { // moments that a slow scrape has missed are left out
			next = next.Add(ts.interval)
		}
		timer.Reset(next.Sub(now))
	}
}

// wait waits until the scrapes that run have ended, which ts.ctx must have made
// them do, or for ctx.
func (ts *targets) wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		ts.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the next component still has a scrape: %w", ctx.Err())
	}
}
