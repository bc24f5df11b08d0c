// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"runtime"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/otelcol-gpu-nvml/internal/nvml"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// How long one wait for events lasts, and how long a thread pauses before it registers
// again.
const (
	waitFor      = time.Second
	firstPause   = time.Second
	longestPause = time.Minute
)

// codesInEvent is how many codes a frame may have. More of them are in the next.
const codesInEvent = 256

// events waits for the events of a board on a thread of its own.
type events struct {
	thread  string
	out     *output
	caller  func() Caller
	changed func() // the MIG configuration changed
	current *waiter
	all     []*waiter // that may still run
}

// want has the events waited for that a request asks for, from now on.
func (e *events) want(request *nvmlproto.Request, b *nvmlproto.Board, d nvml.Device) {
	var types uint64
	if slices.Contains(request.Groups, nvmlproto.GroupXID) {
		types |= nvml.EventXID
	}
	if b.MIG != nil {
		types |= nvml.EventMIG
	}
	if e.current != nil && e.current.types == types {
		return // also where waiting has ended for good
	}
	e.stop()
	if types == 0 {
		return
	}
	e.current = &waiter{
		events: e, device: d, uuid: b.UUID, types: types,
		end: make(chan struct{}), done: make(chan struct{}),
	}
	e.all = append(slices.DeleteFunc(e.all, func(w *waiter) bool { return w.ended() }), e.current)
	go e.current.run()
}

// stop has no events waited for. A wait that has begun ends by itself.
func (e *events) stop() {
	if e.current != nil {
		close(e.current.end)
		e.current = nil
	}
}

// waiter is one thread that waits.
type waiter struct {
	*events
	device nvml.Device
	uuid   string
	types  uint64
	end    chan struct{} // closed to stop
	done   chan struct{} // closed at the end
}

func (w *waiter) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *waiter) ending() bool {
	select {
	case <-w.end:
		return true
	default:
		return false
	}
}

// run waits until stop, or until the board has no events any more.
func (w *waiter) run() {
	runtime.LockOSThread()
	defer close(w.done)
	caller := w.caller()
	pause := firstPause
	for {
		r, alive := w.wait(caller)
		if w.ending() {
			return
		}
		if r.Unavailable() {
			r = nvml.NotSupported
		}
		w.write(nvmlproto.Event{Return: int(r)})
		if r.Lost() || r == nvml.NotSupported {
			return
		}
		if alive {
			pause = firstPause
		}
		select {
		case <-w.end:
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

// wait registers, and reports events until a call fails, and returns its return. alive is
// whether waiting worked until then.
func (w *waiter) wait(caller Caller) (r nvml.Return, alive bool) {
	supported, r := caller.EventTypes(w.device)
	if r != nvml.Success {
		return r, false
	}
	types := w.types & supported
	if types == 0 {
		return nvml.NotSupported, false
	}
	set, r := caller.EventSet()
	if r != nvml.Success {
		return r, false
	}
	defer caller.FreeSet(set)
	if r = caller.Register(w.device, types, set); r != nvml.Success {
		return r, false
	}
	ready := nvmlproto.Event{Ready: true}
	if types&w.types&nvml.EventXID == 0 && w.types&nvml.EventXID != 0 {
		ready = nvmlproto.Event{Return: nvmlproto.NotSupported} // changes of MIG alone
	}
	w.write(ready)
	for !w.ending() {
		event, r := caller.Wait(set, uint32(waitFor.Milliseconds()))
		switch r {
		case nvml.Success:
			alive = true
			if r = w.drain(caller, set, event); r != nvml.Timeout {
				return r, alive
			}
		case nvml.Timeout:
			alive = true
		default:
			return r, alive
		}
	}
	return nvml.Success, alive
}

// drain reports an event and those that wait behind it: each code once with its number, so
// that a burst is one frame. It returns what the last call returned.
func (w *waiter) drain(caller Caller, set nvml.Set, event nvml.Event) nvml.Return {
	report := nvmlproto.Event{}
	since := time.Now()
	r := nvml.Success
	for r == nvml.Success {
		w.add(&report, event)
		if len(report.XID) >= codesInEvent || time.Since(since) >= waitFor {
			w.write(report)
			report, since = nvmlproto.Event{}, time.Now()
		}
		if w.ending() {
			r = nvml.Timeout
			break
		}
		event, r = caller.Wait(set, 0)
	}
	if report.XID != nil || report.MIG {
		w.write(report)
	}
	return r
}

// add counts an event.
func (w *waiter) add(report *nvmlproto.Event, event nvml.Event) {
	switch event.Type {
	case nvml.EventMIG:
		report.MIG = true
		w.changed()
	case nvml.EventXID:
		same := func(x nvmlproto.XID) bool {
			return x.Code == event.Data && (x.GI == nil) == (event.GI == nvml.NoInstance) && (x.GI == nil || uint32(*x.GI) == event.GI)
		}
		if i := slices.IndexFunc(report.XID, same); i >= 0 {
			report.XID[i].N++
			return
		}
		x := nvmlproto.XID{Code: event.Data, N: 1}
		if event.GI != nvml.NoInstance {
			gi := int(event.GI)
			x.GI = &gi
		}
		report.XID = append(report.XID, x)
	}
}

func (w *waiter) write(e nvmlproto.Event) {
	e.Thread, e.UUID = w.thread, w.uuid
	_ = w.out.frame(nil, nvmlproto.Frame{Event: &e})
}
