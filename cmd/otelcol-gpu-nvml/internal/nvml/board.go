// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// Identify fills in what a board is: its strings and numbers, without whether it has GPM.
// It is read once, unless something of it failed. It returns what reading the UUID returned, or,
// where that ended it, that the board is lost or that the library is not usable.
func (c *Caller) Identify(d Device, board *nvmlproto.Board) Return {
	k := c.device(d)
	i := k.identity
	if i == nil {
		read, r, settled := identify(c, d)
		if r != Success {
			return r
		}
		i = &read
		if settled {
			k.identity = i
		}
	}
	from := &i.board
	board.UUID, board.Name, board.Serial, board.VBIOS, board.PCI = from.UUID, from.Name, from.Serial, from.VBIOS, from.PCI
	board.Minor, board.Index, board.Arch, board.Virtual = from.Minor, from.Index, from.Arch, from.Virtual
	board.Refused = append(board.Refused, i.refused...)
	return Success
}

// MIG is the MIG mode of a board, or nil where it has none.
func (c *Caller) MIG(d Device) (*nvmlproto.MIG, Return) {
	const symbol = "nvmlDeviceGetMigMode"
	_, r := c.ask(d, call{name: symbol}, variant{symbol, func(s string) Return {
		return c.invoke(s, s, uintptr(d), c.clear(16), c.at(1))
	}})
	if r != Success {
		return nil, r
	}
	return &nvmlproto.MIG{Current: int(uint32(c.memory[0])), Pending: int(uint32(c.memory[1]))}, Success
}

// Instance is a GPU instance, with the device that answers for it: that of its first compute
// instance.
type Instance struct {
	nvmlproto.Instance
	Device Device
}

// Instances are the GPU instances of a board that have a compute instance, by their number.
// They are read each time, since handles are used again after a change. The return is that
// of the first call that failed; the other instances are there all the same.
func (c *Caller) Instances(d Device) ([]Instance, []nvmlproto.Refused, Return) {
	w := walk{c: c, parent: d}
	r := w.all()
	slices.SortFunc(w.found, func(a, b Instance) int { return a.GI - b.GI })
	return w.found, w.refused, r
}

// Read reads what the readings are of a board or an instance: all field values in one call,
// and each other method once. Reading ends when the board is lost, or the library unusable.
// What is refused has no value. GPM is read by Metrics, and left out here.
func (c *Caller) Read(d Device, readings []nvmlproto.Reading) ([]nvmlproto.Value, []nvmlproto.Refused) {
	r := reader{c: c, d: d, known: c.device(d), readings: readings}
	for i := range readings {
		if r.read(&readings[i]); r.ended {
			break
		}
	}
	return r.values, r.refused
}

// Processes are those on a board and its instances, and what they used since the last time.
// The return is that of the first list that failed and may be there another time.
func (c *Caller) Processes(d Device) (*nvmlproto.Processes, []nvmlproto.Refused, Return) {
	l := lists{c: c, d: d}
	r := l.all()
	return &l.processes, l.refused, r
}
