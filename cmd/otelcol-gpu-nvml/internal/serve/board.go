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

	"github.com/otelcol-gpu/otelcol-gpu/cmd/otelcol-gpu-nvml/internal/nvml"
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// processesAge is how old a list of processes may be: to make one holds a lock of the
// driver. It is shorter than the 5 s at which lists may be asked for, since scrapes of that
// interval are not on time to the millisecond.
const processesAge = 4500 * time.Millisecond

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

	handle  nvml.Device
	known   nvmlproto.Board        // identity: what never changes while the driver is loaded
	mode    *nvmlproto.MIG         // as last read
	layouts map[nvml.Device]string // what the handles of instances meant
	fresh   bool                   // the next read is the first
	listed  time.Time
	process *nvmlproto.Processes
}

// run answers requests until there are no more, on a thread of its own. With nil, the board
// is not wanted, and its events are not waited for. idle is called when the board may be
// asked again.
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
		idle() // before the answer, which the next request may follow at once
		if b.stopping() {
			b.announce.flush()
		} else {
			b.announce.board(frame)
		}
	}
	b.events.stop()
}

// read answers a request.
func (b *board) read(request *nvmlproto.Request) *nvmlproto.Board {
	if r := b.open(); r != nvml.Success {
		return &nvmlproto.Board{
			ID: request.ID, Thread: b.thread, Return: int(r), Error: b.caller.ErrorString(r), Lost: r.Lost(),
		}
	}
	b.gpm.begin()
	b.known.GPM = b.gpm.supported(b.handle)
	frame := b.known
	frame.ID, frame.Refused = request.ID, slices.Clone(b.known.Refused)
	frame.MIG = b.migMode()
	b.events.want(request, &frame, b.handle)

	var instances []nvml.Instance
	change := b.changes.Load()
	instances = b.instances(&frame)
	hourly := request.Hourly || b.fresh
	todo := newPlan(request, &frame, hourly)
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
func (b *board) open() nvml.Return {
	if b.handle != 0 {
		return nvml.Success
	}
	var d nvml.Device
	var r nvml.Return
	switch index, byIndex := strings.CutPrefix(b.thread, "#"); {
	case byIndex:
		i, _ := strconv.Atoi(index)
		d, r = b.caller.ByIndex(i)
	case deviceid.IsPCI(b.thread):
		d, r = b.caller.ByPCI(b.thread)
	default:
		r = nvml.InvalidArgument
	}
	if r != nvml.Success {
		return r
	}
	known := nvmlproto.Board{Thread: b.thread}
	if r = b.caller.Identify(d, &known); r != nvml.Success {
		return r
	}
	b.gpm.forget()
	b.handle, b.known, b.fresh, b.mode = d, known, true, nil
	return nvml.Success
}

// migMode reads the MIG mode. Another mode may make available what was not.
func (b *board) migMode() *nvmlproto.MIG {
	mode, r := b.caller.MIG(b.handle)
	if r != nvml.Success && !r.Unavailable() {
		return b.mode // as far as is known
	}
	if mode != nil && b.mode != nil && *mode != *b.mode {
		b.caller.Forget(b.handle)
	}
	b.mode = mode
	return mode
}

// What the calls for a list are named where one of them failed.
const (
	listOfInstances = "nvmlDeviceGetMigDeviceHandleByIndex"
	listOfProcesses = "nvmlDeviceGetComputeRunningProcesses"
)

// denied is that a list is not complete, and why.
func denied(call string, r nvml.Return) []nvmlproto.Refused {
	if r == nvml.Success || r.Unavailable() {
		return nil
	}
	return []nvmlproto.Refused{{Call: call, Reason: nvmlproto.ReturnText(int(r)), N: 1}}
}

// instances reads the list of GPU instances.
func (b *board) instances(frame *nvmlproto.Board) []nvml.Instance {
	frame.Instances = nil
	if frame.MIG == nil || frame.MIG.Current == 0 || b.over() {
		return nil
	}
	instances, refused, r := b.caller.Instances(b.handle)
	frame.Refused = append(frame.Refused, refused...)
	frame.Refused = append(frame.Refused, denied(listOfInstances, r)...)
	if extra := len(instances) - nvmlproto.MaxInstances; extra > 0 {
		instances = instances[:nvmlproto.MaxInstances]
		frame.Refused = append(frame.Refused, nvmlproto.Refused{
			Call: listOfInstances, Reason: nvmlproto.ReasonLimit, N: extra,
		})
	}
	layouts := map[nvml.Device]string{}
	for _, i := range instances {
		frame.Instances = append(frame.Instances, i.Instance)
		layouts[i.Device] = layout(frame, &i)
		if old, ok := b.layouts[i.Device]; ok && old != layouts[i.Device] {
			b.caller.Forget(i.Device) // it is another instance's now
		}
	}
	b.layouts = layouts
	return instances
}

// values reads the board's own values.
func (b *board) values(frame *nvmlproto.Board, todo plan) {
	if len(todo.board) == 0 || b.over() {
		return
	}
	values, refused := b.caller.Read(b.handle, todo.board)
	frame.Values = values
	frame.Refused = append(frame.Refused, refused...)
}

// ofInstances reads the instances' values.
func (b *board) ofInstances(request *nvmlproto.Request, frame *nvmlproto.Board, instances []nvml.Instance, todo plan) {
	// What a call for an instance that was just removed returns is not the board's.
	gone := b.announce.lost
	for n, i := range instances {
		if len(todo.instance) == 0 || b.over() {
			return
		}
		values, refused := b.caller.Read(i.Device, todo.instance)
		frame.Instances[n].Values = values
		frame.Refused = append(frame.Refused, refused...)
		b.announce.lost = gone
	}
}

// profile reads GPM.
func (b *board) profile(request *nvmlproto.Request, frame *nvmlproto.Board, instances []nvml.Instance, todo plan) {
	longest := time.Duration(request.WindowMillis) * time.Millisecond
	if longest == 0 {
		longest = longestWindow
	}
	if !frame.GPM {
		frame.Values = append(frame.Values, returned(todo.boardGPM, b.gpm.refused)...)
		return
	}
	b.gpm.keep(func(gi int) bool {
		return slices.ContainsFunc(instances, func(i nvml.Instance) bool { return i.GI == gi })
	})
	if !b.over() {
		values, refused := b.gpm.read(b.handle, whole, frame.UUID, longest, todo.boardGPM)
		frame.Values = append(frame.Values, values...)
		frame.Refused = append(frame.Refused, refused...)
	}
	for n, i := range instances {
		if b.over() {
			return
		}
		values, refused := b.gpm.read(b.handle, i.GI, layout(frame, &i), longest, todo.instanceGPM)
		frame.Instances[n].Values = append(frame.Instances[n].Values, values...)
		frame.Refused = append(frame.Refused, refused...)
	}
	if b.gpm.missed {
		frame.Refused = append(frame.Refused, nvmlproto.Refused{
			Call: string(nvmlproto.MethodGPM), Reason: nvmlproto.ReasonBusy, N: 1,
		})
	}
}

// layout is what a window of GPM measures: the same GPU instance may come back as another.
func layout(b *nvmlproto.Board, i *nvml.Instance) string {
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
		var r nvml.Return
		b.process, refused, r = b.caller.Processes(b.handle)
		b.listed = now
		frame.Refused = append(append(frame.Refused, refused...), denied(listOfProcesses, r)...)
	}
	if b.process != nil {
		list := *b.process
		frame.Processes = &list
	}
}
