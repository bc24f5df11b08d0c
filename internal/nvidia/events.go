// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// events are what is derived of one device: throttling, health and XIDs.
type events struct {
	throttle Throttle
	xid      xidState
}

// Derive returns the derivation of a new device, for devicemap.Vendor. exact reports whether
// the XIDs of a device, by its hw.id, are counted one by one elsewhere, so that nothing is
// derived from its last code; nil: of none.
func Derive(exact func(device string, now time.Time) bool) func() devicemap.Derivation {
	return func() devicemap.Derivation { return &events{xid: xidState{exact: exact}} }
}

// Write implements devicemap.Derivation.
func (e *events) Write(d *devicemap.Device, w *devicemap.Writer) {
	e.throttle.Write(d, w)
	writeHealth(d, w)
	writeFabric(d, w)
	writePeers(d, w)
	e.xid.write(d, w)
}

// writeHealth writes the state that each watch is in. At the source 0 is pass, 10 warn,
// 20 fail.
func writeHealth(d *devicemap.Device, w *devicemap.Writer) {
	rows := d.Rows(HealthStatus)
	delete(rows, "") // a row without its watch
	for _, watch := range slices.Sorted(maps.Keys(rows)) {
		w.Health(strings.ToLower(watch), min(int(rows[watch].V/10), 2))
	}
}

var fabricStates = [...]string{"healthy", "unhealthy", "limited"}

// writeFabric writes one point for each state of the fabric: 1 for the one that it is
// in. A code that NVML does not define is no state.
func writeFabric(d *devicemap.Device, w *devicemap.Writer) {
	x := d.Reading(FabricHealth)
	if !x.Known() || x.V > float64(len(fabricStates)) {
		return
	}
	for i, state := range fabricStates {
		w.State(&names.GPUFabricStatus, int(x.V) == i+1, names.GPUFabricState, state)
	}
}

// writePeers writes how many other GPUs the device reaches over NVLink, and how many it
// does not.
func writePeers(d *devicemap.Device, w *devicemap.Writer) {
	up, down := 0., 0.
	for peer, status := range d.Rows(P2PStatus) {
		switch {
		case peer == "": // a row without its other GPU
		case status.V == 0:
			up++
		default:
			down++
		}
	}
	if up+down == 0 {
		return
	}
	w.Value(&names.GPUNVLinkPeers, up).Attributes().PutStr(names.GPUNVLinkState, "up")
	w.Value(&names.GPUNVLinkPeers, down).Attributes().PutStr(names.GPUNVLinkState, "down")
}
