// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// maxCompute is how many compute instances of a board are looked for, whatever the board
// reports.
const maxCompute = 64

// walk reads the instances of a board in MIG mode.
type walk struct {
	c       *Caller
	parent  Device
	found   []Instance
	uuids   map[string]bool
	refused []nvmlproto.Refused
}

// all reads them. The indexes have holes.
func (w *walk) all() (result Return) {
	w.uuids = map[string]bool{}
	most, r := deviceNumber(w.c, w.parent, "nvmlDeviceGetMaxMigDeviceCount")
	if r != Success {
		return r
	}
	if most > maxCompute {
		w.refuse("nvmlDeviceGetMaxMigDeviceCount", nvmlproto.ReasonLimit)
	}
	for index := range min(most, maxCompute) {
		const symbol = "nvmlDeviceGetMigDeviceHandleByIndex"
		r := w.c.invoke(symbol, symbol, uintptr(w.parent), uintptr(index), w.c.clear(8))
		switch handle := Device(w.c.memory[0]); {
		case r == Success:
			r = w.one(handle)
		case r == NotFound || r == InvalidArgument:
			r = Success // no instance has this index
		}
		if r.Lost() || r.Unusable() {
			return r
		}
		if result == Success {
			result = r
		}
	}
	return result
}

// one reads a compute instance. Only what identifies it is needed; its name and its UUID may
// be missing.
func (w *walk) one(d Device) Return {
	// The handle may have been another instance's before: its numbers are asked for without
	// what is remembered of it.
	gi, r := w.number(d, "nvmlDeviceGetGpuInstanceId")
	if r != Success {
		return r
	}
	ci, r := w.number(d, "nvmlDeviceGetComputeInstanceId")
	if r != Success {
		return r
	}
	uuid, r := w.text(d, "nvmlDeviceGetUUID", deviceid.IsMIG)
	if r != Success && !r.Unavailable() {
		return r
	}
	name, r := w.text(d, "nvmlDeviceGetName", nil)
	if r != Success && !r.Unavailable() {
		return r
	}
	if uuid != "" && w.uuids[uuid] {
		w.refuse("nvmlDeviceGetUUID", nvmlproto.ReasonRepeated)
		return Success
	}
	w.uuids[uuid] = true
	w.settle(d, identity{board: nvmlproto.Board{UUID: uuid, Name: name}})
	w.add(d, gi, name, nvmlproto.Compute{CI: ci, UUID: uuid})
	return Success
}

// add adds a compute instance to its GPU instance.
func (w *walk) add(d Device, gi int, name string, compute nvmlproto.Compute) {
	for i := range w.found {
		if in := &w.found[i]; in.GI == gi {
			in.Compute = append(in.Compute, compute)
			return
		}
	}
	if len(w.found) == nvmlproto.MaxInstances {
		w.refuse("nvmlDeviceGetMigDeviceHandleByIndex", nvmlproto.ReasonLimit)
		return
	}
	w.found = append(w.found, Instance{Device: d, Instance: nvmlproto.Instance{GI: gi, Name: name, Compute: []nvmlproto.Compute{compute}}})
}

// settle keeps who the instance behind a handle is, and forgets what is remembered of the
// handle where it was another one.
func (w *walk) settle(d Device, now identity) {
	k := w.c.device(d)
	if k.identity != nil && k.identity.board.UUID == now.board.UUID && k.identity.board.Name == now.board.Name {
		return
	}
	w.c.Forget(d)
	w.c.device(d).identity = &now
}

func (w *walk) number(d Device, symbol string) (int, Return) {
	r := w.c.invoke(symbol, symbol, uintptr(d), w.c.clear(4))
	return int(uint32(w.c.memory[0])), r
}

func (w *walk) text(d Device, symbol string, valid func(string) bool) (string, Return) {
	if r := w.c.invoke(symbol, symbol, uintptr(d), w.c.clear(nameLength), nameLength); r != Success {
		return "", r
	}
	text, ok := readText(w.c.bytes()[:nameLength])
	if !ok || valid != nil && !valid(text) {
		w.refuse(symbol, nvmlproto.ReasonText)
		return "", Success
	}
	return text, Success
}

func (w *walk) refuse(call, reason string) {
	w.refused = append(w.refused, nvmlproto.Refused{Call: call, Reason: reason, N: 1})
}
