// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package series knows which points are of one series, and how many series
// Prometheus makes of a point.
package series // import "github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor/internal/series"

import (
	"hash/maphash"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

const (
	// maxBytes bounds the labels of a point, and those that its resource gives it.
	maxBytes = 4 << 10
	// maxAttributes bounds their number.
	maxAttributes = 64
	// bucketsASeries is how many buckets of a native histogram weigh as much as a
	// series.
	bucketsASeries = 16
)

var seed = maphash.MakeSeed()

// Resource is what the points of a resource, and then of a scope, have in common.
type Resource struct {
	fingerprint uint64 // of what becomes labels
	written     uint64 // of the scope
	bytes       int
}

// Of returns the resource with these attributes.
func Of(attributes pcommon.Map) Resource {
	var r Resource
	for key, v := range attributes.All() {
		if becomesLabel[key] {
			sum, _ := one(key, v)
			r.fingerprint += sum
			if v.Type() == pcommon.ValueTypeStr {
				r.bytes += len(v.Str())
			}
		}
	}
	return r
}

// Scope is the resource with a scope: Prometheus has no label of it, so the same
// series of two scopes is written in two ways. Version and schema do not count: a pod
// that restarts under its name, with another version, goes on.
func (r Resource) Scope(scope pcommon.InstrumentationScope) Resource {
	_, attributes := fingerprint(scope.Attributes())
	r.written = attributes*3 + maphash.String(seed, scope.Name())
	return r
}

// TooLarge reports whether the labels of a resource are longer than any honest one.
func (r Resource) TooLarge() bool { return r.bytes > maxBytes }

// becomesLabel are the attributes of a resource that the shipped configurations make
// labels of (docs/decisions/0006), but for those of devices, which applications have
// not. What else it has does not keep two of its points apart in Prometheus.
var becomesLabel = map[string]bool{
	names.K8sClusterName: true, names.K8sNodeName: true, names.K8sNamespaceName: true, names.K8sPodName: true, names.K8sContainerName: true,
	names.HostName: true, names.ServerAddress: true, names.ServerPort: true, names.ServiceName: true,
}

// Point is what is to be known of a point.
type Point struct {
	Fingerprint uint64 // of name and labels as Prometheus has them
	Written     uint64 // of scope, name, type and attributes as they were sent
	Series      int
	TooLarge    bool
	Unusable    bool // Prometheus' exporter would refuse it at every scrape
	End         bool // it ends its series
}

// one is the hash of an attribute as the label that it becomes, and as it was sent.
func one(key string, v pcommon.Value) (label, written uint64) {
	var h maphash.Hash
	h.SetSeed(seed)
	value := v.AsString()
	writeLabel(&h, key)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(value)
	label = h.Sum64()
	h.Reset()
	_, _ = h.WriteString(key)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(value)
	return label, h.Sum64()
}

// fingerprint does not depend on the order of attributes. In the first one
// attributes that become one label are the same.
func fingerprint(attributes pcommon.Map) (sum, written uint64) {
	for key, v := range attributes.All() {
		label, sent := one(key, v)
		sum += label
		written += sent
	}
	return sum, written
}

// writeLabel writes the name of a label that an attribute becomes: what is no letter
// or digit is an underscore there, and several are one.
func writeLabel(h *maphash.Hash, key string) {
	underscore := false
	for _, r := range key {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			_ = h.WriteByte(byte(r))
			underscore = false
		} else if !underscore {
			_ = h.WriteByte('_')
			underscore = true
		}
	}
}

// metric is the hashes of a metric's name, as Prometheus has it and as it was sent.
type metric struct{ family, written uint64 }

// of returns the point with these attributes and bounds of a metric.
func (r Resource) of(of metric, attributes pcommon.Map, bounds []float64, n int) Point {
	size := 0
	for key, v := range attributes.All() {
		size += len(key)
		if v.Type() == pcommon.ValueTypeStr {
			size += len(v.Str())
		} else if v.Type() == pcommon.ValueTypeMap || v.Type() == pcommon.ValueTypeSlice || v.Type() == pcommon.ValueTypeBytes {
			size += len(v.AsString())
		}
	}
	if size > maxBytes || attributes.Len() > maxAttributes {
		return Point{TooLarge: true}
	}
	var h maphash.Hash
	h.SetSeed(seed)
	write := func(x uint64) {
		var b [8]byte
		for i := range b {
			b[i] = byte(x >> (8 * i))
		}
		_, _ = h.Write(b[:])
	}
	labels, written := fingerprint(attributes)
	write(r.fingerprint)
	write(of.family)
	write(labels)
	for _, bound := range bounds {
		write(math.Float64bits(bound))
	}
	p := Point{Fingerprint: h.Sum64(), Series: n, Unusable: !usable(attributes)}
	h.Reset()
	write(r.written)
	write(of.written)
	write(written)
	p.Written = h.Sum64()
	return p
}

// part is the type of the series that a histogram or a summary consists of: no
// other metric may have their names.
const part = math.MaxUint64

// Metrics are the metrics that Prometheus makes of one, by the hash of their names,
// with their types.
func Metrics(m pmetric.Metric, family string) map[uint64]uint64 {
	kind := m.Type()
	switch {
	case kind == pmetric.MetricTypeSum && !m.Sum().IsMonotonic():
		kind = pmetric.MetricTypeGauge
	case kind == pmetric.MetricTypeExponentialHistogram:
		kind = pmetric.MetricTypeHistogram
	}
	made := map[uint64]uint64{Name(family): uint64(kind)}
	if kind == pmetric.MetricTypeHistogram || kind == pmetric.MetricTypeSummary {
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			made[Name(family+suffix)] = part
		}
	}
	return made
}

// Name is the hash of a metric's name.
func Name(name string) uint64 { return maphash.String(seed, name) }

// RemoveIf prepares the attributes of each point of a metric, asks about the point
// and removes it if the answer is yes. Family is the metric's name in Prometheus.
// It returns how many are left.
func (r Resource) RemoveIf(m pmetric.Metric, family string, prepare func(pcommon.Map), remove func(Point) bool) int {
	name := metric{Name(family), maphash.String(seed, m.Type().String()+"\x00"+m.Unit()+"\x00"+m.Name())}
	judge := func(attributes pcommon.Map, bounds []float64, n int, flags pmetric.DataPointFlags) bool {
		prepare(attributes)
		p := r.of(name, attributes, bounds, n)
		p.End = flags.NoRecordedValue()
		return remove(p)
	}
	number := func(p pmetric.NumberDataPoint) bool { return judge(p.Attributes(), nil, 1, p.Flags()) }
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		m.Gauge().DataPoints().RemoveIf(number)
	case pmetric.MetricTypeSum:
		m.Sum().DataPoints().RemoveIf(number)
	case pmetric.MetricTypeHistogram:
		m.Histogram().DataPoints().RemoveIf(func(p pmetric.HistogramDataPoint) bool {
			bounds := p.ExplicitBounds().AsRaw()
			return judge(p.Attributes(), bounds, len(bounds)+3, p.Flags()) // +Inf, sum, count
		})
	case pmetric.MetricTypeExponentialHistogram:
		m.ExponentialHistogram().DataPoints().RemoveIf(func(p pmetric.ExponentialHistogramDataPoint) bool {
			if !p.Flags().NoRecordedValue() && !native(p) {
				prepare(p.Attributes())
				return remove(Point{Unusable: true})
			}
			buckets := p.Positive().BucketCounts().Len() + p.Negative().BucketCounts().Len()
			return judge(p.Attributes(), nil, 1+buckets/bucketsASeries, p.Flags())
		})
	case pmetric.MetricTypeSummary:
		m.Summary().DataPoints().RemoveIf(func(p pmetric.SummaryDataPoint) bool {
			quantiles := make([]float64, p.QuantileValues().Len())
			for i, q := range p.QuantileValues().All() {
				quantiles[i] = q.Quantile()
			}
			return judge(p.Attributes(), quantiles, len(quantiles)+2, p.Flags()) // sum, count
		})
	}
	return points.Count(m)
}
