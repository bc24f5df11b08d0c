// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import "go.opentelemetry.io/collector/pdata/pcommon"

// read sorts all rows of one page to their devices.
func (t *Target) read(p *Page) {
	t.page.start(p)
	if t.vendor.Survey != nil {
		t.surveyed.find(t.vendor, p, t.page.number)
	}
	for i := range p.Rows {
		t.readRow(p.Rows[i].Series, p.Rows[i].Value, p.Time)
	}
	for i := range t.page.shares {
		t.page.shares[i].settle()
	}
	clear(t.page.shares)
	t.page.shares = t.page.shares[:0]
}

func (t *Target) readRow(s *Series, v float64, now pcommon.Timestamp) {
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
	if reason, ok := t.vendor.check(v, f.field); !ok {
		refused[reason]++
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
	case f.field != nil:
		if !d.keepValue(s, v) {
			refused[Repeated]++
		}
		if f.share != notShared {
			if row, may := d.note(place, s, v); may {
				t.page.shares = append(t.page.shares, row)
			}
		}
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
	p.refused, p.over, p.counted = page.Refused, page.Over, 0
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
