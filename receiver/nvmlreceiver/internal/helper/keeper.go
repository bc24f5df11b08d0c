// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

const (
	// A helper that was asked to end is killed after killAfter: to end a process in the
	// middle of a call has frozen boards.
	killAfter = 30 * time.Second
	// maxEnding is how many helpers that do not end are left behind. A process that hangs in
	// the driver cannot be killed.
	maxEnding = 2
	// healthyFor is after how long the first delay is due again.
	healthyFor = 10 * time.Minute
	maxDelay   = time.Minute
	maxHeard   = 16 * nvmlproto.MaxBoards // threads of which the helper that waits is known
)

// firstDelay is from a failure to the next start; each further one doubles it.
func firstDelay(cause nvmlproto.Cause) time.Duration {
	switch cause {
	case nvmlproto.CauseCrashed, nvmlproto.CauseFrames, nvmlproto.CauseTimeout, nvmlproto.CauseStuck, nvmlproto.CauseUnknownError:
		return time.Second
	}
	return 10 * time.Second
}

// Keeper starts helpers, one after the other. It is for one goroutine, except Stuck.
type Keeper struct {
	Start func() (*Child, error)
	Opts  Options

	current *Process
	ending  []*Process

	delay   time.Duration // the last one, 0 while nothing has failed
	since   time.Time     // of the last success after a failure, 0 while it fails
	notYet  time.Time     // before which nothing is started
	last    *Error        // the last failure
	started int

	mu     sync.Mutex
	hearer map[string]int // number of the newest helper that waits for events, by thread
}

// Ready returns the helper, after starting it if there is none. Until the delay after a
// failure has passed, it returns that failure; a failure is due to be counted only where
// it is new.
func (k *Keeper) Ready(now time.Time) (p *Process, again bool, err error) {
	k.ending = slices.DeleteFunc(k.ending, func(p *Process) bool {
		select {
		case <-p.done:
			return true
		default:
			return false
		}
	})
	if k.current != nil {
		return k.current, false, nil
	}
	if k.last != nil && now.Before(k.notYet) {
		return nil, true, k.last
	}
	if len(k.ending) >= maxEnding {
		return nil, false, failed(nvmlproto.CauseBlocked, "%d former helpers have not ended, the first for %v",
			len(k.ending), now.Sub(k.ending[0].ending).Round(time.Second))
	}
	child, err := k.Start()
	if err != nil {
		return nil, false, k.Fail(err, now)
	}
	k.started++
	k.current = run(child, k.options())
	return k.current, false, nil
}

// options are those of the helper that is started now. What the driver reports reaches a
// helper that is ending too, and counts once: from the one that was the last to wait for it.
func (k *Keeper) options() Options {
	opts, number := k.Opts, k.started
	if opts.Event == nil {
		return opts
	}
	opts.Event = func(e *nvmlproto.Event) {
		k.mu.Lock()
		newest := k.hearer[e.Thread]
		if e.Ready && number > newest && (newest > 0 || len(k.hearer) < maxHeard) {
			if k.hearer == nil {
				k.hearer = map[string]int{}
			}
			k.hearer[e.Thread] = number
		}
		k.mu.Unlock()
		if number >= newest {
			k.Opts.Event(e)
		}
	}
	return opts
}

// Running is the helper that runs, nil if there is none.
func (k *Keeper) Running() *Process { return k.current }

// Starts is how many helpers have been started.
func (k *Keeper) Starts() int { return k.started }

// Succeeded notes that the helper has answered.
func (k *Keeper) Succeeded(now time.Time) {
	switch {
	case k.delay == 0:
	case k.since.IsZero():
		k.since = now
		if firstDelay(k.last.Cause) != time.Second {
			k.delay = 0 // the cause is gone: it is not one that comes and goes
		}
	case now.Sub(k.since) >= healthyFor:
		k.delay = 0
	}
}

// Fail ends the helper because of an error, and returns that error. The next one is
// started after a delay.
func (k *Keeper) Fail(err error, now time.Time) error {
	known := &Error{}
	if !errors.As(err, &known) {
		known = &Error{nvmlproto.CauseHelperStart, err}
	}
	k.Stop(now)
	first := firstDelay(known.Cause)
	if k.last != nil && firstDelay(k.last.Cause) != first || !k.since.IsZero() && now.Sub(k.since) >= healthyFor {
		k.delay = 0
	}
	k.delay = max(first, min(2*k.delay, maxDelay))
	k.notYet, k.last, k.since = now.Add(k.delay), known, time.Time{}
	return known
}

// Stop has the helper end, without a delay for the next one. It does not wait.
func (k *Keeper) Stop(now time.Time) {
	p := k.current
	if p == nil {
		return
	}
	k.current = nil
	p.ending = now
	k.ending = append(k.ending, p)
	_ = p.child.Terminate()
	go func() {
		kill := time.NewTimer(killAfter)
		defer kill.Stop()
		select {
		case <-p.done:
			return
		case <-kill.C:
		}
		_ = p.child.Kill()
	}()
}

// Ending is how many helpers were asked to end and have not.
func (k *Keeper) Ending() int {
	n := 0
	for _, p := range k.ending {
		select {
		case <-p.done:
		default:
			n++
		}
	}
	return n
}

// Close ends the helper, and waits for it until ctx ends. A helper that hangs then ends,
// once it can, at the end of its standard input.
func (k *Keeper) Close(ctx context.Context) {
	k.Stop(time.Now())
	for _, p := range k.ending {
		select {
		case <-p.done:
		case <-ctx.Done():
			return
		}
	}
}
