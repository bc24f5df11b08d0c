// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// labelled are the rows of families with a label of their own (clock_event,
// xid, health_watch), by that label.
type labelled map[devicetable.ID]map[string]value

func (l *labelled) offer(id devicetable.ID, text string, v float64, r rank) {
	if *l == nil {
		*l = labelled{}
	}
	rows := (*l)[id]
	if rows == nil {
		rows = map[string]value{}
		(*l)[id] = rows
	}
	x := rows[text]
	x.offer(v, r, false)
	rows[text] = x
}

// clockEvents are the reasons in the order of their bits in field 112; NVML and
// DCGM use the same bits (nvml.h, nvmlClocksEventReason*).
var clockEvents = [...]string{
	"gpu_idle", "clocks_setting", "power_cap", "hw_slowdown", "sync_boost",
	"sw_thermal", "hw_thermal", "hw_power_brake", "display_clocks",
}

// writeThrottle says for each reason whether it holds the clocks down. The bit
// mask tells it exactly; without it the exporter's count over its sliding window
// (above 0), or the rise of its total since the page before.
func (w *writer) writeThrottle() {
	d := w.device
	active := map[string]bool{}
	if mask := d.values[devicetable.ThrottleReasons]; mask.rank != rankNone {
		for bit, reason := range clockEvents {
			active[reason] = uint64(mask.v)&(1<<bit) != 0
		}
	} else if rows := d.labelled[devicetable.ClockEventsCount]; rows != nil {
		for reason, x := range rows {
			active[reason] = x.v > 0
		}
	} else if rows := d.labelled[devicetable.ClockEventsTotal]; rows != nil {
		for reason, x := range rows {
			// A reason that is new on a later page has risen from 0.
			active[reason] = d.clockEventTotals != nil && x.v > d.clockEventTotals[reason]
		}
		d.clockEventTotals = totals(rows)
	} else {
		return
	}
	for _, reason := range clockEvents {
		w.state(&names.GPUThrottleActive, active[reason], names.GPUThrottleReason, reason)
		delete(active, reason)
	}
	delete(active, "") // the row of an exporter that has seen no event
	for _, reason := range slices.Sorted(maps.Keys(active)) {
		w.state(&names.GPUThrottleActive, active[reason], names.GPUThrottleReason, reason)
	}
}

func totals(rows map[string]value) map[string]float64 {
	m := make(map[string]float64, len(rows))
	for k, x := range rows {
		m[k] = x.v
	}
	return m
}

var healthStates = [...]string{"pass", "warn", "fail"}

// writeHealth writes one point a state for each watch: 1 for the state that it
// is in. At the source 0 is pass, 10 warn, 20 fail.
func (w *writer) writeHealth() {
	rows := w.device.labelled[devicetable.HealthStatus]
	delete(rows, "") // a row without its watch
	for _, watch := range slices.Sorted(maps.Keys(rows)) {
		in := min(int(rows[watch].v/10), len(healthStates)-1)
		for i, state := range healthStates {
			p := w.state(&names.GPUHealthStatus, i == in, names.GPUHealthState, state)
			p.Attributes().PutStr(names.GPUHealthWatch, strings.ToLower(watch))
		}
	}
}

// xidState counts the XIDs of one device from changes of its last code. The same
// code twice in a row cannot be seen that way: the counts are lower bounds.
type xidState struct {
	known bool  // the device was seen on an earlier page
	last  int64 // the last code then, 0 for none
	codes map[int64]*xidCount
	total map[string]*counter // start times of the exporter's own counts
}

type xidCount struct {
	n     int64
	start pcommon.Timestamp
}

// writeXID writes gpu.xid.errors: the exporter's own counts where it has them.
func (w *writer) writeXID() {
	d := w.device
	total := d.labelled[devicetable.XIDTotal]
	s := &d.xid
	last := d.values[devicetable.XIDLast]
	switch code := int64(last.v); {
	case last.rank == rankNone:
		// 4.x exporters have no row before the first XID, and lose it when the
		// field is blank: what was known stays known.
	case total == nil && s.known && code != s.last && code != 0:
		w.countXID(code)
		s.last = code
	default:
		s.last = code
	}
	s.known = true
	if total != nil {
		w.writeXIDTotal(total)
		return
	}
	for _, code := range slices.Sorted(maps.Keys(s.codes)) {
		count := s.codes[code]
		p := w.point(&names.GPUXIDErrors)
		if w.time < count.start { // the clock was set back
			count.start = w.time
		}
		p.SetIntValue(count.n)
		p.SetStartTimestamp(count.start)
		p.Attributes().PutInt(names.GPUXIDCode, code)
		p.Attributes().PutBool(names.GPUXIDDerived, true)
	}
}

func (w *writer) countXID(code int64) {
	s := &w.device.xid
	count := s.codes[code]
	if count == nil {
		if len(s.codes) >= maxXIDCodes {
			w.target.beyond(OverXIDCodes)
			return
		}
		if s.codes == nil {
			s.codes = map[int64]*xidCount{}
		}
		// It was 0 on the page before, so the first count of 1 is a rise.
		count = &xidCount{start: w.device.seenBefore}
		s.codes[code] = count
	}
	count.n++
}

func (w *writer) writeXIDTotal(rows map[string]value) {
	s := &w.device.xid
	if s.total == nil {
		s.total = map[string]*counter{}
	}
	// An exporter that counts forgets no code: this one was restarted, and what it
	// counts of the code next has risen from 0, however high it was before.
	maps.DeleteFunc(s.total, func(text string, _ *counter) bool {
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
				w.target.beyond(OverXIDCodes)
				continue
			}
			// A code that is new on a later page has risen from 0.
			c = &counter{start: w.device.seenBefore}
			s.total[strings.Clone(text)] = c
		}
		v := rows[text].v
		p := w.point(&names.GPUXIDErrors)
		p.SetIntValue(int64(math.Round(v)))
		p.SetStartTimestamp(c.observe(v, w.time))
		p.Attributes().PutInt(names.GPUXIDCode, code)
	}
}
