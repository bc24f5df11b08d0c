// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Each of these faults of a processor is found by the first sets. Some change what it
// made, some the page, so that it makes of it what a faulty one would.
func TestFaultsAreFound(t *testing.T) {
	for name, tt := range map[string]struct {
		fault func() fault
		found string
	}{
		"-1 of a ratio that is off is a value": {onPage(withoutSentinel), "hit_ratio{"},
		"ranks that repeat a figure are added": {onPage(withoutRanks), "sglang-0.5: inference.server.requests{"},
		"ends on the page end no series":       {onPage(withoutMarkers), "has 0 markers of its end"},
		"a torn histogram is whole":            {onPage(notTorn), "inference.request.outcome=success} is "},
		"milliseconds are seconds":             {made(unscaled), "has a sum of"},
		"a counter counts twice":               {made(twice), "inference.server.tokens{"},
		"a start stays where it was":           {made(firstStart), "begins"},
		"a start is the time of the reading":   {made(newStart), "begins"},
		"all bounds have one layout":           {made(oneLayout), "of other bounds"},
		"the first two buckets are one":        {made(joined), "at most"},
		"aborted requests were successful":     {made(successful), "inference.request.outcome=success} is more than the page has"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= 12; seed++ {
				all, err := set(seed, tt.fault())
				require.NoError(t, err)
				for _, d := range all {
					if strings.Contains(d.What, tt.found) {
						t.Log(d)
						return
					}
				}
				if !assert.Empty(t, all, "it is found for another reason") {
					return
				}
			}
			t.Error("it is not found")
		})
	}
}

// one is a point of a metric: of one kind, or of the other.
type one struct {
	resource   string
	metric     pmetric.Metric
	attributes pcommon.Map
	number     pmetric.NumberDataPoint
	histogram  pmetric.HistogramDataPoint
}

func (o *one) is(name string) bool { return strings.HasPrefix(o.metric.Name(), name) }

func (o *one) key() string { return fmt.Sprint(o.resource, o.metric.Name(), o.attributes.AsRaw()) }

// isHistogram and isCounter are of points with a value.
func (o *one) isHistogram() bool {
	return o.metric.Type() == pmetric.MetricTypeHistogram && !o.histogram.Flags().NoRecordedValue()
}

func (o *one) isCounter() bool {
	return o.metric.Type() == pmetric.MetricTypeSum && o.metric.Sum().IsMonotonic() && !o.number.Flags().NoRecordedValue()
}

// points calls change for each point of the scopes that are taken, and removes those of
// which it returns false.
func points(taken func(scope string) bool, change func(*one) bool) func(pmetric.ResourceMetrics) {
	return func(rm pmetric.ResourceMetrics) {
		id, _ := rm.Resource().Attributes().Get("service.instance.id")
		for _, sm := range rm.ScopeMetrics().All() {
			if !taken(sm.Scope().Name()) {
				continue
			}
			for _, m := range sm.Metrics().All() {
				number := func(p pmetric.NumberDataPoint) bool {
					return !change(&one{resource: id.Str(), metric: m, attributes: p.Attributes(), number: p})
				}
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					m.Gauge().DataPoints().RemoveIf(number)
				case pmetric.MetricTypeSum:
					m.Sum().DataPoints().RemoveIf(number)
				case pmetric.MetricTypeHistogram:
					m.Histogram().DataPoints().RemoveIf(func(p pmetric.HistogramDataPoint) bool {
						return !change(&one{resource: id.Str(), metric: m, attributes: p.Attributes(), histogram: p})
					})
				}
			}
		}
	}
}

// onPage is a fault in what is on the page, made one in what the processor makes of it.
// Each set has one of its own.
func onPage(f func() func(*one) bool) func() fault {
	return func() fault { return fault{before: points(func(string) bool { return true }, f())} }
}

func made(f func() func(*one) bool) func() fault {
	return func() fault { return fault{after: points(func(name string) bool { return name == scope }, f())} }
}

func withoutSentinel() func(*one) bool {
	return func(o *one) bool {
		if o.metric.Type() == pmetric.MetricTypeGauge && o.number.DoubleValue() == -1 {
			o.number.SetDoubleValue(1)
		}
		return true
	}
}

func withoutRanks() func(*one) bool {
	return func(o *one) bool {
		if rank, ok := o.attributes.Get("tp_rank"); ok {
			o.attributes.PutStr("worker", rank.Str())
			o.attributes.PutStr("tp_rank", "0")
		}
		return true
	}
}

func withoutMarkers() func(*one) bool {
	return func(o *one) bool {
		if o.metric.Type() == pmetric.MetricTypeHistogram {
			return o.isHistogram()
		}
		return !o.number.Flags().NoRecordedValue()
	}
}

// notTorn is a histogram of which a bucket that fell is empty.
func notTorn() func(*one) bool {
	return func(o *one) bool {
		if !o.isHistogram() {
			return true
		}
		sum := uint64(0)
		for i, n := range o.histogram.BucketCounts().All() {
			if n > 1<<53 {
				o.histogram.BucketCounts().SetAt(i, 0)
			} else {
				sum += n
			}
		}
		o.histogram.SetCount(sum)
		return true
	}
}

func unscaled() func(*one) bool {
	return func(o *one) bool {
		if engine, _ := o.attributes.Get("inference.engine"); o.isHistogram() && engine.Str() == "triton" {
			o.histogram.SetSum(1000 * o.histogram.Sum())
		}
		return true
	}
}

func twice() func(*one) bool {
	return func(o *one) bool {
		if o.isCounter() && o.is("inference.server.tokens") {
			if o.number.ValueType() == pmetric.NumberDataPointValueTypeInt {
				o.number.SetIntValue(2 * o.number.IntValue())
			} else {
				o.number.SetDoubleValue(2 * o.number.DoubleValue())
			}
		}
		return true
	}
}

func firstStart() func(*one) bool {
	first := map[string]pcommon.Timestamp{}
	return func(o *one) bool {
		if o.isCounter() {
			start, ok := first[o.key()]
			if !ok {
				start = o.number.StartTimestamp()
				first[o.key()] = start
			}
			o.number.SetStartTimestamp(start)
		}
		return true
	}
}

func newStart() func(*one) bool {
	return func(o *one) bool {
		if o.isCounter() {
			o.number.SetStartTimestamp(o.number.Timestamp())
		}
		return true
	}
}

func oneLayout() func(*one) bool {
	return func(o *one) bool {
		if v, ok := o.attributes.Get("inference.bounds"); ok && v.Str() != "none" {
			v.SetStr("00000000")
		}
		return true
	}
}

func joined() func(*one) bool {
	return func(o *one) bool {
		if b := o.histogram; o.isHistogram() && b.BucketCounts().Len() > 2 {
			b.BucketCounts().SetAt(0, b.BucketCounts().At(0)+b.BucketCounts().At(1))
			b.BucketCounts().SetAt(1, 0)
		}
		return true
	}
}

func successful() func(*one) bool {
	return func(o *one) bool {
		if v, ok := o.attributes.Get("inference.request.outcome"); ok && v.Str() == "cancelled" {
			v.SetStr("success")
		}
		return true
	}
}
