// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// processesAge is how old a list of processes may be: to make one holds a lock of the
// driver.
const processesAge = 5 * time.Second

// board reads one board. All of it but changes belongs to the board's thread.
type board struct {
	thread   string
	jobs     chan *nvmlproto.Request
	done     chan struct{}
	announce announcer
	caller   Caller
	gpm      gpm
	events   *events
	stopping func() bool
	// changes counts the events of a change of the MIG configuration.
	changes atomic.Int64

	handle  Device
	known   nvmlproto.Board // identity: what never changes while the driver is loaded
	mode    nvmlproto.MIG
	links   links
	fresh   bool // the next read is the first
	listed  time.Time
	process *nvmlproto.Processes
}

// run answers requests until there are no more, on a thread of its own. With nil, the board
// is not wanted, and its events are not waited for. idle is called when the board may be asked again.
func (b *board) run(idle func()) {
	runtime.LockOSThread()
	defer close(b.done)
	for request := range b.jobs {
		if request == nil {
			b.events.stop()
			idle()
			continue
		}
		b.announce.lost = false
		frame := b.read(request)
		if b.stopping() {
			b.announce.flush()
		} else {
			b.announce.board(frame)
		}
		idle()
	}
	b.events.stop()
}

// read answers a request.
func (b *board) read(request *nvmlproto.Request) *nvmlproto.Board {
	if r := b.open(); r != nvmlproto.Success {
		return &nvmlproto.Board{
			ID: request.ID, Thread: b.thread, Return: r, Error: b.caller.ErrorString(r), Lost: nvmlproto.Lost(r),
		}
	}
	b.gpm.begin()
	b.known.GPM = b.gpm.supported(b.handle)
	frame := b.known
	frame.ID, frame.Refused = request.ID, slices.Clone(b.known.Refused)
	frame.MIG = b.caller.MIG(b.handle)
	if frame.MIG != nil && *frame.MIG != b.mode {
		b.mode = *frame.MIG
		b.caller.Forget(b.handle)
	}
	b.events.want(request, &frame, b.handle)

	var instances []Instance
	change := b.changes.Load()
	instances = b.instances(&frame)
	hourly := request.Hourly || b.fresh
	todo := newPlan(request, &frame, b.links, hourly)
	b.values(&frame, todo)
	b.ofInstances(request, &frame, instances, todo)
	if b.changes.Load() != change && !b.over() {
		// The layout changed meanwhile: handles may be another instance's by now.
		instances = b.instances(&frame)
		b.ofInstances(request, &frame, instances, todo)
	}
	b.profile(request, &frame, instances, todo)
	b.processes(request, &frame)
	if b.announce.lost || slices.ContainsFunc(frame.Values, func(v nvmlproto.Value) bool { return nvmlproto.Lost(v.Return) }) {
		b.handle = 0
		b.events.stop()
		return &nvmlproto.Board{ID: request.ID, Thread: b.thread, UUID: b.known.UUID, Lost: true}
	}
	b.fresh, b.known.Refused = false, nil
	return &frame
}

// over is whether there is no reason to read on.
func (b *board) over() bool { return b.announce.lost || b.stopping() }

// open gets the board's handle and identity, once.
func (b *board) open() int {
	if b.handle != 0 {
		return nvmlproto.Success
	}
	var d Device
	var r int
	switch index, byIndex := strings.CutPrefix(b.thread, "#"); {
	case byIndex:
		i, _ := strconv.Atoi(index)
		d, r = b.caller.ByIndex(i)
	case deviceid.IsPCI(b.thread):
		d, r = b.caller.ByPCI(b.thread)
	default:
		r = nvmlproto.InvalidArgument
	}
	if r != nvmlproto.Success {
		return r
	}
	known := nvmlproto.Board{Thread: b.thread}
	if r = b.caller.Identify(d, &known); r != nvmlproto.Success {
		return r
	}
	b.gpm.forget()
	b.handle, b.known, b.fresh, b.links, b.mode = d, known, true, linksUnknown, nvmlproto.MIG{}
	return nvmlproto.Success
}

// instances reads the list of GPU instances.
func (b *board) instances(frame *nvmlproto.Board) []Instance {
	frame.Instances = nil
	if frame.MIG == nil || frame.MIG.Current == 0 || b.over() {
		return nil
	}
	instances, refused, r := b.caller.Instances(b.handle)
	frame.Refused = append(frame.Refused, refused...)
	if r != nvmlproto.Success {
		return nil
	}
	if extra := len(instances) - nvmlproto.MaxInstances; extra > 0 {
		instances = instances[:nvmlproto.MaxInstances]
		frame.Refused = append(frame.Refused, nvmlproto.Refused{
			Call: "nvmlDeviceGetMigDeviceHandleByIndex", Reason: nvmlproto.ReasonLimit, N: extra,
		})
	}
	for _, i := range instances {
		frame.Instances = append(frame.Instances, i.Instance)
	}
	return instances
}

// values reads the board's own values.
func (b *board) values(frame *nvmlproto.Board, todo plan) {
	frame.Values = nil
	for _, readings := range [][]nvmlproto.Reading{todo.board, todo.fallback} {
		if len(readings) == 0 || b.over() {
			break
		}
		values, refused := b.caller.Read(b.handle, readings)
		frame.Values = append(frame.Values, values...)
		frame.Refused = append(frame.Refused, refused...)
		if b.links = max(b.links, answering(values)); b.links == linksData {
			break
		}
	}
}

// ofInstances reads the instances' values.
func (b *board) ofInstances(request *nvmlproto.Request, frame *nvmlproto.Board, instances []Instance, todo plan) {
	// What a call for an instance that was just removed returns is not the board's.
	gone := b.announce.lost
	for n, i := range instances {
		if len(todo.instance) == 0 || b.over() {
			return
		}
		values, refused := b.caller.Read(i.Handle, todo.instance)
		frame.Instances[n].Values = values
		frame.Refused = append(frame.Refused, refused...)
		b.announce.lost = gone
	}
}

// profile reads GPM.
func (b *board) profile(request *nvmlproto.Request, frame *nvmlproto.Board, instances []Instance, todo plan) {
	longest := time.Duration(request.WindowMillis) * time.Millisecond
	if longest == 0 {
		longest = longestWindow
	}
	if !frame.GPM {
		frame.Values = append(frame.Values, returned(todo.boardGPM, b.gpm.refused)...)
		return
	}
	b.gpm.keep(func(gi int) bool {
		return slices.ContainsFunc(instances, func(i Instance) bool { return i.GI == gi })
	})
	if !b.over() {
		values := b.gpm.read(b.handle, whole, frame.UUID, longest, todo.boardGPM)
		frame.Values = append(frame.Values, values...)
	}
	for n, i := range instances {
		if b.over() {
			return
		}
		values := b.gpm.read(b.handle, i.GI, layout(frame, &i), longest, todo.instanceGPM)
		frame.Instances[n].Values = append(frame.Instances[n].Values, values...)
	}
	if b.gpm.missed {
		frame.Refused = append(frame.Refused, nvmlproto.Refused{
			Call: string(nvmlproto.MethodGPM), Reason: nvmlproto.ReasonBusy, N: 1,
		})
	}
}

// layout is what a window of GPM measures: the same GPU instance may come back as another.
func layout(b *nvmlproto.Board, i *Instance) string {
	text := []string{b.UUID, strconv.Itoa(i.GI), i.Name}
	for _, c := range i.Compute {
		text = append(text, strconv.Itoa(c.CI)+"="+c.UUID)
	}
	return strings.Join(text, "/")
}

// processes reads the lists of processes.
func (b *board) processes(request *nvmlproto.Request, frame *nvmlproto.Board) {
	if !slices.Contains(request.Groups, nvmlproto.GroupProcesses) || b.over() {
		return
	}
	if now := time.Now(); b.process == nil || now.Sub(b.listed) >= processesAge {
		var refused []nvmlproto.Refused
		b.process, refused = b.caller.Processes(b.handle)
		b.listed = now
		frame.Refused = append(frame.Refused, refused...)
	}
	if b.process != nil {
		list := *b.process
		frame.Processes = &list
	}
}
