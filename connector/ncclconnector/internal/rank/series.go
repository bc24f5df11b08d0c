// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/holders"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/inspector"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// groupKey is what the series of ranks have: communicators of one label are one.
type groupKey struct {
	holder holders.Holder
	label  string
	rank   int // -1: all
}

// group has the series of ranks.
type group struct {
	since   time.Time
	ranks   int
	ops     map[string]*operation
	drops   [3]uint64
	dropped bool // Inspector states drops
	written bool
}

// operation has the series of one operation. Sums are in seconds and bytes.
type operation struct {
	since               time.Time
	buckets             [len(bounds) + 1]uint64
	count               uint64
	seconds, bytes, bus float64
	sized               bool
	sequence            uint64
}

// bounds of nccl.operation.duration, in seconds.
var bounds = [...]float64{20e-6, 50e-6, 100e-6, 500e-6, 1e-3, 5e-3, 10e-3, 50e-3, 0.1, 0.5, 1, 10}

// How many series a group has beside its operations, and an operation.
const (
	ofGroup     = 1 + len(recordKinds)
	ofOperation = len(bounds) + 3 + 3 // buckets with +Inf, count and sum; bytes, bus, sequence
)

var recordKinds = [...]string{names.RecordCollective, names.RecordPointToPoint, names.RecordProxy}

func (g *group) size() int { return ofGroup + len(g.ops)*ofOperation }

func (s *State) groupOf(key rankKey) groupKey {
	k := groupKey{key.holder, key.comm.Label(), key.rank}
	if !s.cfg.RankLabel {
		k.rank = -1
	}
	return k
}

func (s *State) group(key groupKey, now time.Time) (*group, bool) {
	g := s.groups[key]
	if g == nil {
		if s.series+ofGroup > s.cfg.MaxSeries {
			return nil, false
		}
		s.series += ofGroup
		g = &group{since: now, ops: map[string]*operation{}}
		s.groups[key] = g
	}
	return g, true
}

func (s *State) operation(g *group, name string, now time.Time) (*operation, bool) {
	o := g.ops[name]
	if o == nil {
		if s.series+ofOperation > s.cfg.MaxSeries {
			return nil, false
		}
		s.series += ofOperation
		o = &operation{since: now}
		g.ops[name] = o
	}
	return o, true
}

func (o *operation) add(r *inspector.Record) {
	seconds := r.Duration.Seconds()
	i, _ := slices.BinarySearch(bounds[:], seconds) // a bound is in the bucket below it
	o.buckets[i]++
	o.count++
	o.seconds += seconds
	if message, bus, ok := r.Traffic(); ok {
		o.bytes, o.bus, o.sized = o.bytes+message, o.bus+bus, true
	}
	o.sequence = r.Sequence // it begins again with a process
}

// dropped adds what Inspector has dropped since it last said so.
func (r *rank) dropped(totals [3]uint64) {
	r.group.dropped = true
	for i, n := range totals {
		if n > r.drops[i] {
			r.group.drops[i] += n - r.drops[i]
		}
	}
	r.drops = totals
}

// Writer is how metrics are written.
type Writer struct {
	// Describe writes a scope, Place a resource.
	Describe func(pcommon.InstrumentationScope)
	Place    func(holders.Holder, pcommon.Map)
	// Device is the hw.id of a holder, "" where it is not certain.
	Device func(holders.Holder) string
}

// Metrics are the metrics of all ranks. Series of ranks that are gone end in it, once.
func (s *State) Metrics(now time.Time, w Writer) pmetric.Metrics {
	out := &writer{Writer: w, md: pmetric.NewMetrics(), now: pcommon.NewTimestampFromTime(now), open: map[*identity]*place{}}
	newest := map[*group]time.Time{}
	for _, r := range s.ranks {
		if r.newest.After(newest[r.group]) {
			newest[r.group] = r.newest
		}
	}
	was := s.identities
	s.identities = map[holders.Holder]*identity{}
	s.prune(now, func(key groupKey, g *group) {
		if old := was[key.holder]; old != nil && g.written {
			out.group(old, key, g, 0, true)
		}
	})
	for key, g := range s.groups {
		is := s.identities[key.holder]
		if is == nil {
			is = w.identify(key.holder)
			if old := was[key.holder]; old != nil && old.equal(is) {
				is = old
			}
			s.identities[key.holder] = is
		}
		if old := was[key.holder]; old != nil && old != is && g.written {
			out.group(old, key, g, 0, true) // it becomes known later whose job, or which device, it is
		}
		g.written = true
		out.group(is, key, g, max(0, now.Sub(newest[g])), false)
	}
	return out.md
}

// identity is what the series of a holder are written under.
type identity struct {
	attrs  pcommon.Map
	device string
}

func (w *Writer) identify(h holders.Holder) *identity {
	is := &identity{pcommon.NewMap(), w.Device(h)}
	h.Put(is.attrs)
	w.Place(h, is.attrs)
	return is
}

func (i *identity) equal(o *identity) bool { return i.device == o.device && i.attrs.Equal(o.attrs) }

type writer struct {
	Writer
	md   pmetric.Metrics
	now  pcommon.Timestamp
	open map[*identity]*place
}

// place are the metrics of an identity.
type place struct {
	metrics   pmetric.MetricSlice
	numbers   map[string]pmetric.NumberDataPointSlice
	durations *pmetric.HistogramDataPointSlice
	device    string
}

func (w *writer) place(of *identity) *place {
	p := w.open[of]
	if p == nil {
		rm := w.md.ResourceMetrics().AppendEmpty()
		of.attrs.CopyTo(rm.Resource().Attributes())
		sm := rm.ScopeMetrics().AppendEmpty()
		w.Describe(sm.Scope())
		p = &place{metrics: sm.Metrics(), numbers: map[string]pmetric.NumberDataPointSlice{}, device: of.device}
		w.open[of] = p
	}
	return p
}

// group writes the series of a group, or ends them.
func (w *writer) group(of *identity, key groupKey, g *group, age time.Duration, ends bool) {
	p := w.place(of)
	identify := func(attrs pcommon.Map) {
		attrs.PutStr(names.NCCLCommunicator, key.label)
		if key.rank >= 0 {
			attrs.PutInt(names.NCCLRank, int64(key.rank))
		}
		if p.device != "" {
			attrs.PutStr(names.HwID, p.device)
		}
	}
	number := func(m names.Metric, since time.Time, attribute, value string) pmetric.NumberDataPoint {
		dps, has := p.numbers[m.Name]
		if !has || ends { // an end is a Metric of its own: the Prometheus exporter reads no further in it
			dps = m.Init(p.metrics.AppendEmpty())
		}
		if !ends {
			p.numbers[m.Name] = dps
		}
		dp := dps.AppendEmpty()
		identify(dp.Attributes())
		dp.SetTimestamp(w.now)
		if m.Kind == names.Counter {
			dp.SetStartTimestamp(pcommon.NewTimestampFromTime(since))
		}
		if attribute != "" {
			dp.Attributes().PutStr(attribute, value)
		}
		if ends {
			dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		}
		return dp
	}
	if dp := number(names.NCCLDataAge, g.since, "", ""); !ends {
		dp.SetDoubleValue(age.Seconds())
	}
	for i, kind := range recordKinds {
		if !g.dropped {
			break
		}
		if dp := number(names.NCCLRecordsDropped, g.since, names.NCCLRecordKind, kind); !ends {
			dp.SetIntValue(int64(g.drops[i]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.ops)) {
		o := g.ops[name]
		w.duration(p, o, name, identify, ends)
		if dp := number(names.NCCLOperationSequence, o.since, names.NCCLOperation, name); !ends {
			dp.SetIntValue(int64(o.sequence))
		}
		if !o.sized {
			continue
		}
		for m, v := range map[*names.Metric]float64{&names.NCCLOperationBytes: o.bytes, &names.NCCLOperationBusBytes: o.bus} {
			if dp := number(*m, o.since, names.NCCLOperation, name); !ends {
				dp.SetIntValue(int64(v))
			}
		}
	}
}

func (w *writer) duration(p *place, o *operation, name string, identify func(pcommon.Map), ends bool) {
	dps := p.durations
	if dps == nil || ends { // as in group
		all := names.NCCLOperationDuration.InitHistogram(p.metrics.AppendEmpty())
		dps = &all
	}
	if !ends {
		p.durations = dps
	}
	dp := dps.AppendEmpty()
	identify(dp.Attributes())
	dp.Attributes().PutStr(names.NCCLOperation, name)
	dp.SetTimestamp(w.now)
	dp.SetStartTimestamp(pcommon.NewTimestampFromTime(o.since))
	if ends {
		points.EndHistogram(dp, bounds[:])
		return
	}
	dp.SetCount(o.count)
	dp.SetSum(o.seconds)
	dp.ExplicitBounds().FromRaw(bounds[:])
	dp.BucketCounts().FromRaw(o.buckets[:])
}
