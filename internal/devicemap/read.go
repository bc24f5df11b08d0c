// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
)

// rawPoint is a row that keeps its family: in OpenTelemetry names one that the
// table does not know, in DCGM names any.
type rawPoint struct {
	series *Series
	v      float64
	dcgm   bool // to be written under its DCGM name, with all its labels
}

// read sorts all rows of one page to their devices.
func (t *Target) read(p *Page) {
	t.page.number++
	t.page.time = 0
	t.page.order = t.page.order[:0]
	t.page.loose = t.page.loose[:0]
	t.page.refused, t.page.over = p.Refused, p.Over
	for i := range p.Rows {
		t.readRow(p.Rows[i].Series, p.Rows[i].Value, p.Time)
	}
	t.settleShares()
}

func (t *Target) readRow(s *Series, v float64, now pcommon.Timestamp) {
	refused := &t.page.refused
	f := s.family
	switch {
	case !f.dcgm:
		refused[NotDCGM]++
		return
	case s.part():
		refused[WrongType]++
		return
	}
	if reason, ok := check(v, f.id, f.known); !ok {
		refused[reason]++
		return
	}
	t.page.time = now
	if s.labels.row.uuid == "" {
		t.readLoose(s, v)
		return
	}
	d := t.device(s.labels)
	if d == nil {
		t.beyond(OverDevices)
		return
	}
	h := &s.labels.row.holder
	place, ok := d.heldBy(h)
	if !ok {
		t.beyond(OverHolders) // the row's value still counts
	}
	if t.opts.DCGM {
		d.raw = append(d.raw, rawPoint{s, v, true})
	}
	switch {
	case f.known:
		d.take(s, v)
		if f.share != notShared {
			t.noteShare(d, place, s, v)
		}
	case !t.opts.OTel:
	case t.opts.DropUnmapped:
		refused[Unmapped]++
	default:
		d.raw = append(d.raw, rawPoint{s, v, false})
	}
}

// take keeps the value of a known field, on the board where it belongs there.
func (d *device) take(s *Series, v float64) {
	id := s.family.id
	field := &devicetable.All[id]
	rank := rankOwn
	if !s.labels.row.holder.empty() {
		rank = rankHolder
	}
	if field.Scope == devicetable.Board && d.parent != nil {
		d, rank = d.parent, rankInstance
	}
	if field.Label == "" {
		d.values[id].offer(field.Convert(v), rank, id == devicetable.XIDLast)
		return
	}
	d.labelled.offer(id, s.labels.get(field.Label), v, rank) // "" is the row of an exporter that has seen no event
}

// readLoose keeps rows of NVSwitches, CPUs and whatever else is no GPU, under
// the exporter. A known field without a device has no meaning.
func (t *Target) readLoose(s *Series, v float64) {
	switch {
	case s.family.known:
		t.page.refused[NoDevice]++
	case t.opts.OTel && t.opts.DropUnmapped && !t.opts.DCGM:
		t.page.refused[Unmapped]++
	default:
		if t.opts.DCGM {
			t.page.loose = append(t.page.loose, rawPoint{s, v, true})
		}
		if t.opts.OTel && !t.opts.DropUnmapped {
			t.page.loose = append(t.page.loose, rawPoint{s, v, false})
		}
	}
}

// check says whether v is a value at all.
func check(v float64, id devicetable.ID, known bool) (Reason, bool) {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return NotANumber, false
	case !known:
		return Sentinel, !devicetable.UnknownSentinel(v)
	}
	field := &devicetable.All[id]
	switch {
	case field.Sentinel(v):
		return Sentinel, false
	case v < 0 && !field.Signed:
		return Negative, false
	case v == 0 && field.ZeroIsAbsent:
		return NoSensor, false
	}
	return 0, true
}
