// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"sync/atomic"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/otelcol-gpu-nvml/internal/nvml"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// Two samples of GPM nearer than shortest mean nothing; without a longest in the request,
// a window may have the length of two of the longest collection intervals.
const (
	shortestWindow = 100 * time.Millisecond
	longestWindow  = 10 * time.Minute
)

// turns lets one thread at a time call GPM: with several, libraries have crashed. A call
// that does not return must not cost the other boards their scrape, so that they wait for
// a while only, and then go on without GPM.
type turns struct {
	token chan struct{}
	taken atomic.Int64 // when, in nanoseconds since the start of the turns
	start time.Time
}

// longestTurn is how long others wait for a call of GPM.
const longestTurn = 2 * time.Second

func newTurns() *turns { return &turns{token: make(chan struct{}, 1), start: time.Now()} }

// take waits for the turn, and is false if it does not come.
func (t *turns) take() bool {
	select {
	case t.token <- struct{}{}:
	default:
		held := time.Since(t.start) - time.Duration(t.taken.Load())
		timer := time.NewTimer(longestTurn - held)
		defer timer.Stop()
		select {
		case t.token <- struct{}{}:
		case <-timer.C:
			return false
		}
	}
	t.taken.Store(int64(time.Since(t.start)))
	return true
}

func (t *turns) give() { <-t.token }

// window is what GPM measures of a board or an instance over the time between two scrapes.
type window struct {
	layout string      // what was measured: the window of another layout means nothing
	from   nvml.Sample // of the last scrape
	to     nvml.Sample // of this one
	since  time.Time
}

// gpm has the windows of a board and its instances.
type gpm struct {
	turns    *turns
	caller   Caller
	announce *announcer
	windows  map[int]*window // by GPU instance, whole for the board
	missed   bool            // the turn did not come during this scrape
	asked    bool            // support is known
	support  bool
	refused  nvml.Return // what asking for support returned, if it may be asked again
}

// whole is the board in place of an instance.
const whole = -1

// begin is called before the first call of a scrape.
func (g *gpm) begin() { g.missed = false }

// forget is called for another handle of the board: windows of the old one mean nothing.
func (g *gpm) forget() {
	g.asked, g.support, g.refused = false, false, nvml.Success
	for _, w := range g.windows {
		w.since = time.Time{}
	}
}

// supported asks once whether the board has GPM, or again where it may change.
func (g *gpm) supported(d nvml.Device) bool {
	if g.asked {
		return g.support
	}
	g.call(func() {
		var r nvml.Return
		g.support, r = g.caller.GPMSupport(d)
		g.asked, g.refused = r == nvml.Success, r
		if r.Unavailable() {
			g.asked, g.refused = true, nvml.Success
		}
	})
	return g.support
}

// call makes a call of GPM in its turn. It is false if the turn did not come: then, no
// other call of the scrape waits for it.
func (g *gpm) call(f func()) bool {
	if g.missed {
		return false
	}
	g.announce.flush() // the last call must not seem to last while this one waits
	if !g.turns.take() {
		g.missed = true
		return false
	}
	defer g.turns.give()
	f()
	return true
}

// read takes a sample of the board, or one of its instances, and returns what GPM measured
// since the last one. There is nothing at first, after a gap, and for a new layout.
func (g *gpm) read(d nvml.Device, gi int, layout string, longest time.Duration, readings []nvmlproto.Reading) ([]nvmlproto.Value, []nvmlproto.Refused) {
	if len(readings) == 0 {
		return nil, nil
	}
	w, r := g.window(gi, layout)
	if w == nil {
		return returned(readings, r), nil
	}
	now := time.Now()
	if !g.call(func() {
		if gi == whole {
			r = g.caller.SampleGet(d, w.to)
		} else {
			r = g.caller.MigSampleGet(d, gi, w.to)
		}
	}) {
		return nil, nil
	}
	if r != nvml.Success {
		return returned(readings, r), nil
	}
	age := now.Sub(w.since)
	if !w.since.IsZero() && age < shortestWindow {
		return nil, nil // the window goes on
	}
	var values []nvmlproto.Value
	var refused []nvmlproto.Refused
	if !w.since.IsZero() && age <= longest {
		if !g.call(func() { values, refused, r = g.caller.Metrics(w.from, w.to, readings) }) {
			return nil, nil // the window goes on
		}
		if r != nvml.Success {
			values = returned(readings, r)
		}
	}
	w.from, w.to, w.since = w.to, w.from, now
	return values, refused
}

// window returns the window for a layout, without a beginning if it is new, or nil and
// what the library returned. It is nil with 0 if the turn did not come.
func (g *gpm) window(gi int, layout string) (*window, nvml.Return) {
	if w := g.windows[gi]; w != nil {
		if w.layout != layout {
			w.layout, w.since = layout, time.Time{}
		}
		return w, nvml.Success
	}
	w := &window{layout: layout}
	r := nvml.Success
	if !g.call(func() { w.from, r = g.caller.SampleAlloc() }) || r != nvml.Success {
		return nil, r
	}
	if !g.call(func() { w.to, r = g.caller.SampleAlloc() }) || r != nvml.Success {
		g.call(func() { g.caller.SampleFree(w.from) })
		return nil, r
	}
	g.windows[gi] = w
	return w, nvml.Success
}

// keep frees the windows of instances that are gone.
func (g *gpm) keep(has func(gi int) bool) {
	for gi, w := range g.windows {
		if gi != whole && !has(gi) && g.call(func() {
			g.caller.SampleFree(w.from)
			g.caller.SampleFree(w.to)
		}) {
			delete(g.windows, gi)
		}
	}
}

// returned is the same return for all readings; for success, there is no value.
func returned(readings []nvmlproto.Reading, r nvml.Return) []nvmlproto.Value {
	if r == nvml.Success {
		return nil
	}
	values := make([]nvmlproto.Value, 0, len(readings))
	for _, reading := range readings {
		values = append(values, nvmlproto.Value{Name: reading.Name, Return: int(r)})
	}
	return values
}
