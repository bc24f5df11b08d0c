// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/exporters"
)

const (
	// maxSilence is how long a silent device or series is remembered. What was
	// silent for longer has aged out of every backend: it needs no end.
	maxSilence = 10 * time.Minute

	// sweepInterval is how often silence is looked for.
	sweepInterval = time.Minute
)

// tracker remembers, for every device, its last holder, and for every series of it
// the resource that it was passed on with, so that they can be ended when the
// device changes hands or is described otherwise. Nothing in it is safe for
// concurrent use.
//
// Which of two identities is newer is decided by the timestamps of the data.
// Silence is measured by arrival: one node with a wrong clock must not make its
// neighbours forgotten.
type tracker struct {
	maxSeries int
	renames   bool // service.name may change between data and marker
	// lateFor is how long only older data may come of a device until it counts
	// as newer. It is less than max_age: the identity has not changed yet, and so
	// nothing has to be ended that was passed on in between.
	lateFor time.Duration
	devices map[string]*device
	tracked int              // series of all devices
	sources [sourceCount]int // devices by source
	swept   time.Time
	added   int // series ever tracked
	// superseded are the ends of series that go on under another description. They
	// stand before the data that goes on, see identity.
	superseded endWriter
}

// device is what is remembered of one hw.id.
type device struct {
	holder   owner.Owner
	source   source
	identity *identity         // as it was last passed on
	former   *identity         // the one before it
	newest   pcommon.Timestamp // of the data
	heard    time.Time
	series   map[uint64]*series
	// The series in the order of the last batch: the next nearly always has the
	// same, and comparing costs less than hashing. All of them are in series.
	order    []*series
	replicas []string // suffixes of the parts that were written with it
	// Series whose own attributes describe the device, by what is left of them
	// without the description: their keys in series. See undescribed.
	described map[uint64]uint64
	scrape    int  // number of the one that its newest data is of
	contested bool // several exporters print it
	// The exporter whose labels name its owners, and when it last printed it.
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
	identity *identity
	heard    time.Time
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
}

func newTracker(cfg *Config) *tracker {
	return &tracker{
		maxSeries: cfg.MaxSeries, renames: cfg.OnlyEndSeries, lateFor: cfg.MaxAge / 2, devices: map[string]*device{},
		superseded: endWriter{out: pmetric.NewResourceMetricsSlice()},
	}
}

// observe takes note of the live points in rm, which has those contents and is
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
func (t *tracker) observe(
	id string, who owner.Owner, from source, by *exporters.Exporter, rm pmetric.ResourceMetrics, has contents, now time.Time,
	out pmetric.ResourceMetricsSlice,
) (ended, untracked int) {
	if !has.live {
		return 0, 0
	}
	newest := has.newest
	if newest == 0 {
		newest = pcommon.NewTimestampFromTime(now)
	}
	d := t.devices[id]
	attrs := rm.Resource().Attributes()
	again := false
	if d != nil {
		changed := who != d.holder || str(attrs, names.ServiceName) != str(d.identity.attrs, names.ServiceName)
		late := newest < d.newest && now.Sub(d.heard) <= t.lateFor
		again = newest == d.newest
		if late || again && changed {
			return 0, 0
		}
		if changed {
			ended = t.end(d, endOf(d.newest, newest), out)
		}
	}
	// The device itself is only remembered with a series, so that one limit
	// bounds both.
	if d == nil {
		if t.tracked >= t.maxSeries {
			return 0, livePoints(rm)
		}
		d = &device{series: map[uint64]*series{}, source: from}
		t.devices[id] = d
		t.sources[from]++
	}
	t.sources[d.source]--
	t.sources[from]++
	t.superseded.at, t.superseded.live = before(d.newest, newest, again), rm
	d.holder, d.source, d.newest, d.heard = who, from, newest, now
	if !again {
		d.scrape++
	}
	d.describe(attrs, by)
	n := t.superseded.n
	untracked = t.track(d, rm)
	return ended + t.superseded.n - n, untracked
}

// endOf is the time of a marker that ends series whose last point is of time
// last, when something newer is of time ts. Stores keep milliseconds, and take
// nothing older than the last point: so it lies behind that after a clock was
// set back, too.
func endOf(last, ts pcommon.Timestamp) pcommon.Timestamp {
	if ts > last {
		return ts
	}
	return last + pcommon.Timestamp(time.Millisecond)
}

// track remembers the series of rm, as far as the limit allows.
func (t *tracker) track(d *device, rm pmetric.ResourceMetrics) (untracked int) {
	at := 0 // of d.order
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			var fam *family
			name := m.Name()
			eachPoint(m, func(attrs pcommon.Map, _ pcommon.Timestamp, marker bool) {
				if marker {
					return
				}
				at++
				if at <= len(d.order) && d.order[at-1].is(name, attrs) {
					s := d.order[at-1]
					if s.identity != d.identity {
						t.supersede(d, s)
					}
					s.heard, s.scrape, fam = d.heard, d.scrape, s.family
					return
				}
				key := seriesKey(name, attrs)
				if s := d.series[key]; s != nil {
					if s.identity != d.identity {
						t.supersede(d, s)
					}
					s.heard, s.scrape, fam = d.heard, d.scrape, s.family
					d.place(at-1, s)
					return
				}
				t.replaceDescribed(d, key, name, attrs)
				if t.tracked >= t.maxSeries {
					untracked++
					return
				}
				if fam == nil {
					fam = newFamily(sm, m)
				}
				s := &series{family: fam, attrs: pcommon.NewMap(), identity: d.identity, heard: d.heard, scrape: d.scrape, number: t.added}
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
func (t *tracker) end(d *device, ts pcommon.Timestamp, out pmetric.ResourceMetricsSlice) int {
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

// lastIdentity is the resource under which the series was last passed on, and who
// held the device, if a marker of time ts can be meant for it: one that is no newer
// than the device's data ends something older.
func (t *tracker) lastIdentity(id string, key uint64, ts pcommon.Timestamp) (*identity, owner.Owner, bool) {
	d := t.devices[id]
	if d == nil || d.series[key] == nil || ts <= d.newest {
		return nil, owner.Owner{}, false
	}
	return d.series[key].identity, d.holder, true
}

// forget takes note that the series was ended under the identity who.
func (t *tracker) forget(id string, who owner.Owner, key uint64) {
	if d := t.devices[id]; d != nil && d.holder == who && d.series[key] != nil {
		d.drop(key)
		t.tracked--
	}
}

// sweep forgets what has been silent for long. It reports whether it was time to.
func (t *tracker) sweep(now time.Time) bool {
	if now.Sub(t.swept) < sweepInterval {
		return false
	}
	t.swept = now
	for id, d := range t.devices {
		for key, s := range d.series {
			if now.Sub(s.heard) > maxSilence {
				d.drop(key)
				t.tracked--
			}
		}
		for left, key := range d.described {
			if d.series[key] == nil {
				delete(d.described, left)
			}
		}
		if now.Sub(d.heard) > maxSilence {
			t.sources[d.source]--
			delete(t.devices, id)
		}
	}
	return true
}

func newFamily(sm pmetric.ScopeMetrics, m pmetric.Metric) *family {
	f := &family{
		scope:     pcommon.NewInstrumentationScope(),
		schemaURL: sm.SchemaUrl(),
		name:      m.Name(),
		metric:    pmetric.NewMetric(),
	}
	sm.Scope().CopyTo(f.scope)
	describe(m, f.metric)
	return f
}

func (f *family) sameScope(other *family) bool {
	return f.scope.Name() == other.scope.Name() && f.scope.Version() == other.scope.Version() &&
		f.schemaURL == other.schemaURL && f.scope.Attributes().Equal(other.scope.Attributes())
}

func livePoints(rm pmetric.ResourceMetrics) (n int) {
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			eachPoint(m, func(_ pcommon.Map, _ pcommon.Timestamp, marker bool) {
				if !marker {
					n++
				}
			})
		}
	}
	return n
}
