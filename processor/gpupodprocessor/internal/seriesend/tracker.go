// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package seriesend remembers what was passed on, and ends it: the series of devices
// that get another owner or are described otherwise, and those of gpu.allocation.
package seriesend

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

// Counts are what became of series and points.
type Counts struct {
	Ended     int // series
	Untracked int // points of series that are not remembered because there is no room
}

// Add adds the counts of one call.
func (c *Counts) Add(o Counts) { c.Ended, c.Untracked = c.Ended+o.Ended, c.Untracked+o.Untracked }

// sweepInterval is how often silence is looked for.
const sweepInterval = time.Minute

// Tracker remembers, for every device, its last owner, and for every series of it
// the resource that it was passed on with, so that they can be ended when the
// device changes hands or is described otherwise. Nothing in it is safe for
// concurrent use.
//
// Which of two identities is newer is decided by the timestamps of the data.
// Silence is measured by arrival: one node with a wrong clock must not make its
// neighbours forgotten.
type Tracker struct {
	maxSeries int
	renames   bool // service.name may change between data and marker
	// lateFor is how long only older data may come of a device until it counts
	// as newer. It is less than max_age: the identity has not changed yet, and so
	// nothing has to be ended that was passed on in between.
	lateFor time.Duration
	devices map[string]*device
	tracked int                       // series of all devices
	sources [identity.SourceCount]int // devices by source
	swept   time.Time
	added   int // series ever tracked
	// superseded are the ends of series that go on under another description. They
	// stand before the data that goes on, see identity.
	superseded endWriter
}

// device is what is remembered of one hw.id.
type device struct {
	owner    owner.Owner
	source   identity.Source
	identity *described        // as it was last passed on
	former   *described        // the one before it
	newest   pcommon.Timestamp // of the data
	lastSeen time.Time
	series   map[uint64]*series
	// The series in the order of the last batch: the next nearly always has the
	// same, and comparing costs less than hashing. All of them are in series.
	order    []*series
	replicas []string // suffixes of the parts that were written with it
	// Series with attributes that describe the device, by what is left of them
	// without the description: their keys in series. See undescribed.
	described map[uint64]uint64
	scrape    int  // number of the one that its newest data is of
	contested bool // several exporters print it
	// The exporter with labels that name its owners, and when it last printed it.
	namedBy *exporters.Exporter
	namedAt time.Time
}

// drop forgets a series. Its caller counts.
func (d *device) drop(key uint64) {
	delete(d.series, key)
	d.order = nil
}

type series struct {
	family   *family
	attrs    pcommon.Map
	identity *described
	lastSeen time.Time
	scrape   int // of the device, that had it last
	number   int // in order of appearance
}

// maxCompared is how many attributes are compared, which takes the square of their
// number; a hash of more does not.
const maxCompared = 16

// is reports whether a point of the metric is of this series.
func (s *series) is(metric string, attrs pcommon.Map) bool {
	return s.family.name == metric && attrs.Len() <= maxCompared && s.attrs.Equal(attrs)
}

// family is a metric without its points, and the scope that it is in.
type family struct {
	scope     pcommon.InstrumentationScope
	schemaURL string
	name      string // the metric's
	metric    pmetric.Metric
	bounds    []float64 // of a histogram
}

// NewTracker returns a Tracker of at most maxSeries series, those of gpu.allocation
// included. renames is whether service.name may change between data and marker. maxAge
// is for how long a snapshot of gpu.allocation counts.
func NewTracker(maxSeries int, renames bool, maxAge time.Duration) *Tracker {
	return &Tracker{
		maxSeries: maxSeries, renames: renames, lateFor: maxAge / 2, devices: map[string]*device{},
		superseded: endWriter{out: pmetric.NewResourceMetricsSlice()},
	}
}

// full reports whether there is no room for another series.
func (t *Tracker) full() bool { return t.tracked >= t.maxSeries }

// Series is the number of series that are remembered.
func (t *Tracker) Series() int { return t.tracked }

// Devices is the number of devices by the source of their owner.
func (t *Tracker) Devices() [identity.SourceCount]int { return t.sources }

// Observe takes note of the live points in rm, which has those contents and is
// the device id held by who, printed by an exporter if that is known. If the
// device changed hands, the series of its former identity are ended in a new
// resource of out. A series that goes on under another description of the device
// is ended under the former one in t.superseded.
//
// Another service.name is another identity too: it is a label of every series.
//
// Data older than the newest is late: it changes nothing. Nor does another
// identity with the same timestamp, for nothing changes hands within a scrape.
// Where nothing but such data has come for a while, a clock was set back.
func (t *Tracker) Observe(
	id string, who owner.Owner, from identity.Source, by *exporters.Exporter, rm pmetric.ResourceMetrics, has points.Contents, now time.Time,
	out pmetric.ResourceMetricsSlice,
) (c Counts) {
	if !has.Live {
		return c
	}
	newest := has.Newest
	if newest == 0 {
		newest = pcommon.NewTimestampFromTime(now)
	}
	d := t.devices[id]
	attrs := rm.Resource().Attributes()
	again := false
	if d != nil {
		changed := who != d.owner || points.Str(attrs, names.ServiceName) != points.Str(d.identity.attrs, names.ServiceName)
		late := newest < d.newest && now.Sub(d.lastSeen) <= t.lateFor
		again = newest == d.newest
		if late || again && changed {
			return c
		}
		if changed {
			c.Ended = t.end(d, endOf(d.newest, newest), out)
		}
	}
	// The device itself is only remembered with a series, so that one limit
	// bounds both.
	if d == nil {
		if t.full() {
			return Counts{Untracked: points.CountLive(rm)}
		}
		d = &device{series: map[uint64]*series{}, source: from}
		t.devices[id] = d
		t.sources[from]++
	}
	t.sources[d.source]--
	t.sources[from]++
	t.superseded.at, t.superseded.live = before(d.newest, newest, again), rm
	d.owner, d.source, d.newest, d.lastSeen = who, from, newest, now
	if !again {
		d.scrape++
	}
	d.describe(attrs, by)
	n := t.superseded.n
	c.Untracked = t.track(d, rm)
	c.Ended += t.superseded.n - n
	return c
}

// track remembers the series of rm, as far as the limit allows.
func (t *Tracker) track(d *device, rm pmetric.ResourceMetrics) (untracked int) {
	at := 0 // of d.order
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			var fam *family
			name := m.Name()
			points.Each(m, func(attrs pcommon.Map, _ pcommon.Timestamp, marker bool) {
				if marker {
					return
				}
				at++
				if at <= len(d.order) && d.order[at-1].is(name, attrs) {
					s := d.order[at-1]
					if s.identity != d.identity {
						t.supersede(d, s)
					}
					s.lastSeen, s.scrape, fam = d.lastSeen, d.scrape, s.family
					return
				}
				key := points.Key(name, attrs)
				if s := d.series[key]; s != nil {
					if s.identity != d.identity {
						t.supersede(d, s)
					}
					s.lastSeen, s.scrape, fam = d.lastSeen, d.scrape, s.family
					d.place(at-1, s)
					return
				}
				t.replaceDescribed(d, key, name, attrs)
				if t.full() {
					untracked++
					return
				}
				if fam == nil {
					fam = newFamily(sm, m)
				}
				s := &series{family: fam, attrs: pcommon.NewMap(), identity: d.identity, lastSeen: d.lastSeen, scrape: d.scrape, number: t.added}
				attrs.CopyTo(s.attrs)
				d.series[key] = s
				d.place(at-1, s)
				t.tracked++
				t.added++
			})
		}
	}
	return untracked
}

// place notes which series is the i-th of a batch. Where a batch has series
// twice, or some for which there was no room, what follows is not noted.
func (d *device) place(i int, s *series) {
	switch {
	case i < len(d.order):
		d.order[i] = s
	case i == len(d.order) && i < len(d.series):
		d.order = append(d.order, s)
	}
}

// end writes markers for all series of d into a resource of their own, each in a
// metric of its own, and forgets them. The stock prometheus exporter stops
// reading a metric at the first marker in it: what follows there, live point or
// marker, would be lost.
func (t *Tracker) end(d *device, ts pcommon.Timestamp, out pmetric.ResourceMetricsSlice) int {
	n := len(d.series)
	if n == 0 {
		return 0
	}
	ordered := make([]*series, 0, n)
	for _, s := range d.series {
		ordered = append(ordered, s)
	}
	slices.SortFunc(ordered, func(a, b *series) int { return a.number - b.number })

	w := endWriter{out: out, at: ts}
	for _, s := range ordered {
		w.add(s)
	}
	clear(d.described)
	clear(d.series)
	d.order = nil
	t.tracked -= n
	return n
}

// lastDescribed is the resource under which the series was last passed on, and who
// held the device, if a marker of time ts can be meant for it: one that is no newer
// than the device's data ends something older.
func (t *Tracker) lastDescribed(id string, key uint64, ts pcommon.Timestamp) (*described, owner.Owner, bool) {
	d := t.devices[id]
	if d == nil || d.series[key] == nil || ts <= d.newest {
		return nil, owner.Owner{}, false
	}
	return d.series[key].identity, d.owner, true
}

// LastOwner is the owner under which the series was last passed on, if a marker of time
// ts can be meant for it.
func (t *Tracker) LastOwner(id string, key uint64, ts pcommon.Timestamp) (who owner.Owner, ok bool) {
	_, who, ok = t.lastDescribed(id, key, ts)
	return who, ok
}

// CopyLast copies the attributes to attrs that the device was last passed on with, if
// who owned it then.
func (t *Tracker) CopyLast(id string, who owner.Owner, attrs pcommon.Map) bool {
	d := t.devices[id]
	if d == nil || d.owner != who {
		return false
	}
	d.identity.attrs.CopyTo(attrs)
	return true
}

// PutSuperseded moves the ends of series that go on under another description into all,
// in front of the resource with which they go on, and starts over.
func (t *Tracker) PutSuperseded(all pmetric.ResourceMetricsSlice) { t.superseded.putBefore(all) }

// Forget takes note that the series was ended under the identity who.
func (t *Tracker) Forget(id string, who owner.Owner, key uint64) {
	if d := t.devices[id]; d != nil && d.owner == who && d.series[key] != nil {
		d.drop(key)
		t.tracked--
	}
}

// Sweep forgets what has been silent for long. It reports whether it was time to.
func (t *Tracker) Sweep(now time.Time) bool {
	if now.Sub(t.swept) < sweepInterval {
		return false
	}
	t.swept = now
	for id, d := range t.devices {
		for key, s := range d.series {
			if now.Sub(s.lastSeen) > ownership.MaxSilence {
				d.drop(key)
				t.tracked--
			}
		}
		for left, key := range d.described {
			if d.series[key] == nil {
				delete(d.described, left)
			}
		}
		if now.Sub(d.lastSeen) > ownership.MaxSilence {
			t.sources[d.source]--
			delete(t.devices, id)
		}
	}
	return true
}
