// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
)

// read sorts all rows of one page to their devices.
func (t *Target) read(p *Page) {
	t.page.start(p)
	if p.Up {
		t.fields.startPage(len(t.vendor.Table.Fields))
	}
	if t.vendor.Survey != nil {
		t.surveyed.find(t.vendor, p, t.page.number)
	}
	for i := range p.Rows {
		s := p.Rows[i].Series
		if s.family.or != nil {
			t.page.unclear = append(t.page.unclear, p.Rows[i])
			continue
		}
		t.readRow(s, s.family.field, p.Rows[i].Value, p.Time)
	}
	t.readUnclear(p.Time)
	for i := range t.page.shares {
		t.page.shares[i].settle()
	}
	clear(t.page.shares)
	t.page.shares = t.page.shares[:0]
}

// meanings are what ambiguous families of the exporters of a page mean, each exporter by its
// host: a page has one, unless it is one that a Prometheus server federates.
type meanings struct {
	now    map[string]Evidence // of this page
	before map[string]Evidence // of the last page with values that decided
}

// readUnclear reads the rows of ambiguous families, once all others have shown what the
// page is.
func (t *Target) readUnclear(now pcommon.Timestamp) {
	p, m := &t.page, &t.meanings
	if len(p.unclear) == 0 {
		return
	}
	if m.now == nil {
		m.now, m.before = map[string]Evidence{}, map[string]Evidence{}
	}
	clear(m.now)
	for _, r := range p.unclear {
		m.now[r.Series.labels.row.facts.text[Host]] |= t.evidenceOf(r)
	}
	for _, d := range p.order {
		if e, has := m.now[d.facts.text[Host]]; has {
			m.now[d.facts.text[Host]] = e | d.evidence
		}
	}
	for _, r := range p.unclear {
		f, host := r.Series.family, r.Series.labels.row.facts.text[Host]
		if t.absentInEither(r) {
			p.refused[Sentinel]++
			continue
		}
		meaning, why := t.vendor.Meaning(m.now[host], m.before[host])
		field := f.field
		switch {
		case meaning == OtherUnit:
			field = f.or
		case meaning == Contradictory, meaning == Undecided && r.Value != 0:
			field = nil
			if p.doubt == "" {
				p.doubt = f.name + ": " + why
			}
		}
		t.readRow(r.Series, field, r.Value, now)
	}
	for host, e := range m.now {
		decides := e&(Fraction|AboveOne) == Fraction || e&(Fraction|AboveOne) == AboveOne
		if _, known := m.before[host]; decides && (known || len(m.before) < MaxDevices) {
			m.before[host] = e
		}
	}
	clear(p.unclear)
	p.unclear = p.unclear[:0]
}

// evidenceOf is what a row of an ambiguous family shows of the page.
func (t *Target) evidenceOf(r Row) Evidence {
	e := r.Series.labels.row.evidence
	if _, ok := t.vendor.check(r.Value, r.Series.family.field); !ok || t.absentInEither(r) {
		return e
	}
	if r.Decimal || r.Value > 0 && r.Value < 1 {
		e |= Fraction
	}
	if r.Value > 1 {
		e |= AboveOne
	}
	return e
}

func (t *Target) absentInEither(r Row) bool {
	f := r.Series.family
	return t.vendor.absent(f.field, r.Value) || t.vendor.absent(f.or, r.Value)
}

// readRow reads a row with the field of its family, which is nil for a family that is not
// in the table, and for an ambiguous one of which the unit is not known.
func (t *Target) readRow(s *Series, field *devicetable.Field, v float64, now pcommon.Timestamp) {
	refused := &t.page.refused
	f := s.family
	switch {
	case !f.ours:
		refused[NotVendor]++
		return
	case s.part():
		refused[WrongType]++
		return
	}
	t.fields.note(s, t.page.number)
	if reason, ok := t.vendor.check(v, field); !ok {
		refused[reason]++
		if reason == Implausible && t.page.implausible == "" {
			t.page.implausible = s.String() + " " + strconv.FormatFloat(v, 'g', -1, 64)
		}
		if d := s.labels.device; d != nil && d.of == &t.devices && d.named != t.page.number {
			d.named = t.page.number
			t.page.named = append(t.page.named, d)
		}
		return
	}
	t.page.time = now
	switch s.labels.row.board {
	case "":
		t.readLoose(s, v)
		return
	case DropRows:
		refused[Dropped]++
		if t.opts.AsIs {
			t.page.loose = append(t.page.loose, rawPoint{s, v, true})
		}
		return
	}
	d := t.devices.find(s.labels)
	if d == nil {
		t.page.beyond(t.tooMany)
		return
	}
	t.page.see(d, s.labels)
	d.evidence |= f.evidence
	held := d
	if t.vendor.HeldWhole && d.parent != nil {
		held = d.parent
	}
	place, ok := held.owners.add(&s.labels.row.owner)
	if !ok {
		t.page.beyond(OverOwners) // the row's value still counts
	}
	if t.opts.AsIs {
		d.raw = append(d.raw, rawPoint{s, v, true})
	}
	switch {
	case field != nil && field.Scope == devicetable.Undivided && d.parent != nil:
		refused[NoSensor]++
	case field != nil:
		if !d.keepValue(s, field, v) {
			refused[Repeated]++
		}
		if f.share != notShared {
			if row, may := d.note(place, s, field, v); may {
				t.page.shares = append(t.page.shares, row)
			}
		}
	case f.field != nil:
		refused[Ambiguous]++
	case f.dropped:
		refused[Dropped]++
	case !t.opts.OTel:
	case t.opts.DropUnmapped:
		refused[Unmapped]++
	default:
		d.raw = append(d.raw, rawPoint{s, v, false})
	}
}

// readLoose keeps rows of NVSwitches, CPUs and whatever else is no GPU, under
// the exporter. A known field without a device has no meaning.
func (t *Target) readLoose(s *Series, v float64) {
	if s.family.field != nil {
		if t.vendor.counts(s.family) {
			t.page.counted = max(t.page.counted, int(s.family.field.Convert(v)))
			if t.opts.AsIs {
				t.page.loose = append(t.page.loose, rawPoint{s, v, true})
			}
		} else {
			t.page.refused[NoDevice]++
		}
		return
	}
	if t.vendor.OnlyDevices && !s.family.dropped {
		t.page.refused[NoDevice]++
		return
	}
	if t.opts.AsIs {
		t.page.loose = append(t.page.loose, rawPoint{s, v, true})
	}
	switch {
	case s.family.dropped:
		t.page.refused[Dropped]++
	case !t.opts.OTel:
	case !t.opts.DropUnmapped:
		t.page.loose = append(t.page.loose, rawPoint{s, v, false})
	case !t.opts.AsIs:
		t.page.refused[Unmapped]++
	}
}

// start begins a page.
func (p *pageState) start(page *Page) {
	p.number++
	p.time = 0
	p.order, p.named = p.order[:0], p.named[:0]
	p.loose = p.loose[:0]
	p.refused, p.over, p.counted, p.doubt, p.implausible = page.Refused, page.Over, 0, "", ""
}

// see notes that a row with the labels is about the device, and about its board.
func (p *pageState) see(d *Device, l *Labels) {
	if d.parent != nil {
		p.see(d.parent, l)
	}
	if d.seen != p.number {
		d.startPage(p.number, p.time)
		p.order = append(p.order, d)
	}
	if d.learned != l {
		d.learn(&l.row)
		d.learned = l
	}
}

// beyond counts a row that is over a limit. The first of a page is named.
func (p *pageState) beyond(limit Over) {
	p.refused[Limit]++
	if p.over == "" {
		p.over = limit
	}
}
