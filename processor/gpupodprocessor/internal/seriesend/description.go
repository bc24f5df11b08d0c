// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package seriesend

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
)

// described is a resource that series of a device were passed on with, and the
// exporter that printed them, if known. What describes a device may change while
// the device stays the same: the exporter's pod, the index, the profile of a MIG
// instance. A series that goes on with another description is another series to
// every store, so the former one is ended, and only that: the same device may
// arrive by two paths, under other names and with other descriptions.
//
// An output may leave out the attribute that changed, and then the series that
// ends there is the one that goes on. So the end stands before the data, and is a
// millisecond older.
type described struct {
	attrs pcommon.Map
	by    *exporters.Exporter
}

func (i *described) is(attrs pcommon.Map, by *exporters.Exporter) bool {
	return i != nil && i.by == by && i.attrs.Equal(attrs)
}

// describe notes the resource that the device is passed on with now.
func (d *device) describe(attrs pcommon.Map, by *exporters.Exporter) {
	if by == nil && d.identity != nil {
		by = d.identity.by
	}
	switch {
	case d.identity.is(attrs, by):
		return
	case d.former.is(attrs, by): // two ways take turns
		d.identity, d.former = d.former, d.identity
		return
	}
	last := &described{attrs: pcommon.NewMap(), by: by}
	attrs.CopyTo(last.attrs)
	d.identity, d.former = last, d.identity
}

// supersede ends a series that d has under another description, unless both are
// of one scrape.
func (t *Tracker) supersede(d *device, s *series) {
	if !s.identity.attrs.Equal(d.identity.attrs) {
		if s.scrape == d.scrape {
			return // which of the two is newer is unknown
		}
		t.superseded.add(s)
	}
	s.identity = d.identity
}

// replaceDescribed ends the series that a new one of d continues: that differs
// from it in labels which describe the device. Families that keep their DCGM
// names have them on their points.
func (t *Tracker) replaceDescribed(d *device, key uint64, metric string, attrs pcommon.Map) {
	left, ok := undescribed(metric, attrs)
	if !ok {
		return
	}
	if d.described == nil {
		d.described = map[uint64]uint64{}
	}
	old := d.described[left]
	if s := d.series[old]; s != nil && s.scrape != d.scrape {
		t.superseded.add(s)
		d.drop(old)
		t.tracked--
	}
	d.described[left] = key
}

// undescribed is the key of a series without the labels that describe its device,
// if it has any.
func undescribed(metric string, attrs pcommon.Map) (key uint64, any bool) {
	key = points.Key(metric, pcommon.NewMap())
	for k, v := range attrs.All() {
		switch exporterlabels.Classify(k) {
		case exporterlabels.Index, exporterlabels.PCIAddress, exporterlabels.Device, exporterlabels.Model,
			exporterlabels.Host, exporterlabels.MIGProfile, exporterlabels.Field:
			any = true
		default:
			key += points.HashAttribute(k, v)
		}
	}
	return key, any
}

// LeaveOut takes the points out of rm, which the exporter printed of a device, that
// another exporter printed before and still prints. It returns how many there were
// and who decides.
func (t *Tracker) LeaveOut(id string, by *exporters.Exporter, rm pmetric.ResourceMetrics, now time.Time) (int, *exporters.Exporter) {
	if by == nil {
		return 0, nil
	}
	d := t.devices[id]
	if d == nil || d.identity.by == by && !d.contested {
		return 0, nil
	}
	d.contested = false
	for _, s := range d.series {
		if d.contested = s.decided(by, now); d.contested {
			return d.leaveOut(by, rm, now)
		}
	}
	return 0, nil
}

func (d *device) leaveOut(by *exporters.Exporter, rm pmetric.ResourceMetrics, now time.Time) (n int, first *exporters.Exporter) {
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			points.Move(m, func(attrs pcommon.Map, _ pcommon.Timestamp, marker bool) (pmetric.Metric, points.Fate) {
				s := d.series[points.Key(m.Name(), attrs)]
				if s == nil && !marker {
					if left, ok := undescribed(m.Name(), attrs); ok {
						s = d.series[d.described[left]]
					}
				}
				if s == nil || !s.decided(by, now) {
					return pmetric.Metric{}, points.Stay
				}
				n, first = n+1, s.identity.by
				return pmetric.Metric{}, points.Dropped
			})
		}
	}
	points.RemoveEmpty(rm)
	return n, first
}

// decided reports whether another exporter than by decides the series.
func (s *series) decided(by *exporters.Exporter, now time.Time) bool {
	return s.identity.by != nil && s.identity.by != by && s.identity.by.Decides(by, s.lastSeen, now)
}

// OwnedAlready gives attrs, of what by prints of the device, the owner that the device
// has already: where the labels of another exporter, which goes on, name its owners, and
// those of by name none. It reports whether that is so.
func (t *Tracker) OwnedAlready(r *identity.Reading, by *exporters.Exporter, attrs pcommon.Map, now time.Time) (who owner.Owner, from identity.Source, ok bool) {
	d := t.devices[r.Device.ID]
	if !d.owned(r, by, now) {
		return owner.Owner{}, identity.SourceNone, false
	}
	d.own(attrs)
	return d.owner, d.source, true
}

// NoteNames notes whether the labels of by name the device's owners.
func (t *Tracker) NoteNames(r *identity.Reading, by *exporters.Exporter, now time.Time) {
	if d := t.devices[r.Device.ID]; d != nil && by != nil && (by == d.namedBy || r.NamesOwner()) {
		d.namedBy, d.namedAt = by, now
	}
}

// owned reports whether what by prints of the device has the owner that the device
// has already: the labels of another exporter, which goes on, name its owners, and
// those of this one name none.
func (d *device) owned(r *identity.Reading, by *exporters.Exporter, now time.Time) bool {
	return d != nil && by != nil && d.namedBy != nil && d.namedBy != by &&
		!r.NamedAlready() && r.Service == "" && !r.NamesOwner() && d.namedBy.Prints(d.namedAt, now)
}

// own gives attrs the owner that the device has.
func (d *device) own(attrs pcommon.Map) {
	for _, key := range identity.OwnerKeys {
		if v, ok := d.identity.attrs.Get(key); ok {
			v.CopyTo(attrs.PutEmpty(key))
		} else {
			attrs.Remove(key)
		}
	}
}
