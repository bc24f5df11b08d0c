// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/forward"
	"github.com/otelcol-gpu/otelcol-gpu/internal/seriesends"
)

// publisher forwards the health of boards, in a goroutine of its own: a pipeline of
// metrics that is slow or refuses delays no event.
//
// What the next component refuses is tried again: the ends of series as they are, and of
// everything else the newest state. A stop ends no series, as a restart is no gap.
type publisher struct {
	next *seriesends.Sender
	// collect returns what has changed since the last call; false: nothing has. again
	// makes it return that once more.
	collect func() (pmetric.Metrics, bool)
	again   func()
	refused func(context.Context, error)

	wake chan struct{} // holds one: there is something to collect
	stop chan struct{}
	done chan struct{}
}

func newPublisher(next consumer.Metrics, maxEnds int) *publisher {
	return &publisher{
		next: seriesends.New(next, maxEnds, nil),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
}

// run publishes until stop is closed, and then once more. Ctx cancels the call under way.
func (p *publisher) run(ctx context.Context) {
	defer close(p.done)
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	var attempts retry
	for {
		select {
		case <-p.stop:
			_ = p.publish(ctx) // counted and logged there; what is refused now is published after the next start
			return
		case <-p.wake:
		case <-ticker.C:
		}
		if attempts.due() {
			attempts.made(p.publish(ctx))
		}
	}
}

// publish forwards what has changed. An error is one after which to try again.
func (p *publisher) publish(ctx context.Context) error {
	md, some := p.collect()
	if !some {
		if kept, _ := p.next.Kept(); kept == 0 {
			return nil
		}
		md = pmetric.NewMetrics() // the ends that were refused
	}
	err := p.next.ConsumeMetrics(ctx, md)
	if err == nil {
		return nil
	}
	p.refused(ctx, err)
	if forward.Permanent(err) {
		return nil
	}
	p.again()
	return err
}

// notify wakes run.
func (p *publisher) notify() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// retry is when to try again what failed.
type retry struct {
	failed  time.Time
	backoff time.Duration // until the next attempt after one that failed
}

// due reports whether an attempt may be made now.
func (r *retry) due() bool { return r.failed.IsZero() || time.Since(r.failed) >= r.backoff }

// made takes the result of an attempt.
func (r *retry) made(err error) {
	if err == nil {
		*r = retry{}
		return
	}
	r.failed, r.backoff = time.Now(), min(max(2*r.backoff, time.Second), maxBackoff)
}
