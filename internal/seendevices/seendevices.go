// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package seendevices lets two receivers of one process that read the same devices, dcgm
// and nvml, emit no series twice: what is known by hw.id of what each of them emits.
package seendevices

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Registry is what receivers of one process know of each other. It is safe for
// concurrent use.
type Registry struct {
	joined atomic.Bool

	mu      sync.Mutex
	emitted map[string]*emitted  // by hw.id
	xids    map[string]time.Time // until when they are counted, by hw.id
}

// emitted are the series of one device, each with the time until which it counts.
type emitted struct {
	series map[uint64]time.Time
	last   time.Time // the latest of these
}

// Process is that of the process.
var Process = &Registry{}

// seed is what series are hashed with. It is random: devices do not choose what
// collides.
var seed = maphash.MakeSeed()

// Join lets the registry note what is emitted. Without a receiver that leaves series to
// another one it costs nothing.
func (r *Registry) Join() { r.joined.Store(true) }

// Emitted notes the series of devices that a receiver emits, for as long as they count.
func (r *Registry) Emitted(md pmetric.Metrics, now time.Time, lasts time.Duration) {
	if !r.joined.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	until := now.Add(lasts)
	for _, rm := range md.ResourceMetrics().All() {
		id := deviceOf(rm)
		if id == "" {
			continue
		}
		e := r.emitted[id]
		if e == nil {
			if r.emitted == nil {
				r.emitted = map[string]*emitted{}
			}
			e = &emitted{series: map[uint64]time.Time{}}
			r.emitted[id] = e
		}
		e.last = until
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				points, ok := pointsOf(m)
				for i := range points.Len() {
					if p := points.At(i); ok && !derived(p) {
						e.series[series(m.Name(), p)] = until
					}
				}
			}
		}
	}
	r.forget(now)
}

// Cut takes the points out of md that were noted, and returns how many.
func (r *Registry) Cut(md pmetric.Metrics, now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	cut := 0
	if len(r.emitted) == 0 {
		return 0
	}
	md.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
		e := r.emitted[deviceOf(rm)]
		if e == nil || now.After(e.last) {
			return false
		}
		left := 0
		for _, sm := range rm.ScopeMetrics().All() {
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool {
				points, ok := pointsOf(m)
				if !ok {
					return false
				}
				points.RemoveIf(func(p pmetric.NumberDataPoint) bool {
					until, noted := e.series[series(m.Name(), p)]
					if noted = noted && !now.After(until); noted {
						cut++
					}
					return noted
				})
				return points.Len() == 0
			})
			left += sm.Metrics().Len()
		}
		return left == 0
	})
	return cut
}

// CountsXIDs notes that the XIDs of a device are counted one by one, for as long as that
// counts.
func (r *Registry) CountsXIDs(device string, now time.Time, lasts time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.xids == nil {
		r.xids = map[string]time.Time{}
	}
	r.xids[device] = now.Add(lasts)
}

// XIDsCounted reports whether the XIDs of a device are counted one by one.
func (r *Registry) XIDsCounted(device string, now time.Time) bool {
	if !r.joined.Load() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	until, counted := r.xids[device]
	return counted && !now.After(until)
}

// forget drops what counts no more.
func (r *Registry) forget(now time.Time) {
	for id, e := range r.emitted {
		if now.After(e.last) {
			delete(r.emitted, id)
			continue
		}
		for s, until := range e.series {
			if now.After(until) {
				delete(e.series, s)
			}
		}
	}
	for id, until := range r.xids {
		if now.After(until) {
			delete(r.xids, id)
		}
	}
}

func deviceOf(rm pmetric.ResourceMetrics) string {
	id, _ := rm.Resource().Attributes().Get(names.HwID)
	return id.Str()
}

func pointsOf(m pmetric.Metric) (pmetric.NumberDataPointSlice, bool) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints(), true
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints(), true
	}
	return pmetric.NewNumberDataPointSlice(), false
}

// derived reports whether a point is a lower bound, which the other receiver may know
// better.
func derived(p pmetric.NumberDataPoint) bool {
	_, is := p.Attributes().Get(names.GPUXIDDerived)
	return is
}

// series is a hash of a series of one device. All codes of XIDs are one: two receivers that
// count them do not share them between each other.
func series(metric string, p pmetric.NumberDataPoint) uint64 {
	sum := maphash.String(seed, metric)
	if metric == names.GPUXIDErrors.Name {
		return sum
	}
	for key, v := range p.Attributes().All() {
		if key == names.HwID || key == names.HwType {
			continue
		}
		if v.Type() == pcommon.ValueTypeStr {
			sum += maphash.String(seed, key+"\x00"+v.Str()) // in whatever order they are
		} else {
			sum += maphash.String(seed, key+"\x00"+v.AsString())
		}
	}
	return sum
}
