// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// maxXIDCodes are counted for one device.
const maxXIDCodes = 256

// OverXIDCodes is the limit that a page with more codes is over.
var OverXIDCodes = devicemap.OverLimit(maxXIDCodes, "XID codes of one GPU")

// events are what is derived of one device: throttling, health and XIDs.
type events struct {
	clockTotals map[string]float64 // of the page before
	xid         xidState
}

// Write implements devicemap.Derivation.
func (e *events) Write(d *devicemap.Device, w *devicemap.Writer) {
	e.writeThrottle(d, w)
	writeHealth(d, w)
	writeFabric(d, w)
	writePeers(d, w)
	e.xid.write(d, w)
}

// clockEvents are the reasons in the order of their bits in field 112; NVML and
// DCGM use the same bits (nvml.h, nvmlClocksEventReason*).
var clockEvents = [...]string{
	"gpu_idle", "clocks_setting", "power_cap", "hw_slowdown", "sync_boost",
	"sw_thermal", "hw_thermal", "hw_power_brake", "display_clocks",
}

// writeThrottle writes for each reason whether it holds the clocks down. The bit
// mask is exact; without it the exporter's count over its sliding window
// (above 0), or the rise of its total since the page before.
func (e *events) writeThrottle(d *devicemap.Device, w *devicemap.Writer) {
	active := map[string]bool{}
	if mask := d.Reading(ThrottleReasons); mask.Known() {
		for bit, reason := range clockEvents {
			active[reason] = uint64(mask.V)&(1<<bit) != 0
		}
	} else if rows := d.Rows(ClockEventsCount); rows != nil {
		for reason, x := range rows {
			active[reason] = x.V > 0
		}
	} else if rows := d.Rows(ClockEventsTotal); rows != nil {
		for reason, x := range rows {
			// A reason that is new on a later page has risen from 0.
			active[reason] = e.clockTotals != nil && x.V > e.clockTotals[reason]
		}
		e.clockTotals = totals(rows)
	} else {
		return
	}
	for _, reason := range clockEvents {
		w.State(&names.GPUThrottleActive, active[reason], names.GPUThrottleReason, reason)
		delete(active, reason)
	}
	delete(active, "") // the row of an exporter that has seen no event
	for _, reason := range slices.Sorted(maps.Keys(active)) {
		w.State(&names.GPUThrottleActive, active[reason], names.GPUThrottleReason, reason)
	}
}

func totals(rows map[string]devicemap.Reading) map[string]float64 {
	m := make(map[string]float64, len(rows))
	for k, x := range rows {
		m[k] = x.V
	}
	return m
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

// xidState counts the XIDs of one device from changes of its last code. The same
// code twice in a row cannot be seen that way: the counts are lower bounds.
type xidState struct {
	known bool  // the device was seen on an earlier page
	last  int64 // the last code then, 0 for none
	codes map[int64]*xidCount
	total map[string]*devicemap.Cumulative // start times of the exporter's own counts
}

type xidCount struct {
	n     int64
	start pcommon.Timestamp
}

// write writes gpu.xid.errors: the exporter's own counts where it has them.
func (s *xidState) write(d *devicemap.Device, w *devicemap.Writer) {
	total := d.Rows(XIDTotal)
	last := d.Reading(XIDLast)
	switch code := int64(last.V); {
	case !last.Known():
		// 4.x exporters have no row before the first XID, and lose it when the
		// field is blank: what was known stays known.
	case total == nil && s.known && code != s.last && code != 0:
		s.count(code, d, w)
		s.last = code
	default:
		s.last = code
	}
	s.known = true
	if total != nil {
		s.writeTotal(total, d, w)
		return
	}
	for _, code := range slices.Sorted(maps.Keys(s.codes)) {
		count := s.codes[code]
		p := w.Point(&names.GPUXIDErrors)
		count.start = min(count.start, w.Time()) // the clock may be set back
		p.SetIntValue(count.n)
		p.SetStartTimestamp(count.start)
		p.Attributes().PutInt(names.GPUXIDCode, code)
		p.Attributes().PutBool(names.GPUXIDDerived, true)
	}
}

func (s *xidState) count(code int64, d *devicemap.Device, w *devicemap.Writer) {
	count := s.codes[code]
	if count == nil {
		if len(s.codes) >= maxXIDCodes {
			w.Beyond(OverXIDCodes)
			return
		}
		if s.codes == nil {
			s.codes = map[int64]*xidCount{}
		}
		// It was 0 on the page before, so the first count of 1 is a rise.
		count = &xidCount{start: d.SeenBefore()}
		s.codes[code] = count
	}
	count.n++
}

func (s *xidState) writeTotal(rows map[string]devicemap.Reading, d *devicemap.Device, w *devicemap.Writer) {
	if s.total == nil {
		s.total = map[string]*devicemap.Cumulative{}
	}
	// An exporter that counts forgets no code: this one was restarted, and what it
	// counts of the code next has risen from 0, however high it was before.
	maps.DeleteFunc(s.total, func(text string, _ *devicemap.Cumulative) bool {
		_, counted := rows[text]
		return !counted
	})
	for _, text := range slices.Sorted(maps.Keys(rows)) {
		code, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			continue // the row of an exporter that has seen no XID
		}
		c := s.total[text]
		if c == nil {
			if len(s.total) >= maxXIDCodes {
				w.Beyond(OverXIDCodes)
				continue
			}
			// A code that is new on a later page has risen from 0.
			c = &devicemap.Cumulative{Start: d.SeenBefore()}
			s.total[strings.Clone(text)] = c
		}
		v := rows[text].V
		p := w.Point(&names.GPUXIDErrors)
		p.SetIntValue(int64(math.Round(v)))
		p.SetStartTimestamp(c.Observe(v, w.Time()))
		p.Attributes().PutInt(names.GPUXIDCode, code)
	}
}
