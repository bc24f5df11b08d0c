// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// fleet is one scrape of nodes of eight devices, one pod a device, ten pods a
// service, one batch a node, with all nine fields of each device.
func fleet(devices int) []pmetric.Metrics {
	var out []pmetric.Metrics
	for dev := range devices {
		if dev%8 == 0 {
			out = append(out, pmetric.NewMetrics())
		}
		r := reading{
			cluster: "prod", namespace: "inference", at: t0,
			service: fmt.Sprint("service-", dev/10), pod: fmt.Sprintf("service-%d-7d9c6b5f4-%05d", dev/10, dev),
			device: fmt.Sprintf("GPU-6f3c1a52-0000-4000-8000-%012d", dev), fields: map[field]float64{},
		}
		for f := range numFields {
			r.fields[f] = 0.5
		}
		r.appendTo(out[len(out)-1])
	}
	return out
}

func setTime(batches []pmetric.Metrics, at time.Time) {
	ts := pcommon.NewTimestampFromTime(at)
	for _, md := range batches {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				points, _ := numbers(m)
				points.At(0).SetTimestamp(ts)
			}
		}
	}
}

var fleetSizes = []int{1000, 10_000}

// BenchmarkObserve takes in one scrape of the whole fleet; see ns/point.
func BenchmarkObserve(b *testing.B) {
	for _, devices := range fleetSizes {
		b.Run(fmt.Sprintf("devices=%d", devices), func(b *testing.B) {
			s := New(defaults(), t0)
			batches := fleet(devices)
			now := t0
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				now = now.Add(15 * time.Second)
				setTime(batches, now)
				b.StartTimer()
				for _, md := range batches {
					s.Observe(md, now)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*devices*int(numFields)), "ns/point")
		})
	}
}

// BenchmarkEvaluate computes one evaluation of a settled fleet, without and with
// writing it as metrics.
func BenchmarkEvaluate(b *testing.B) {
	for _, devices := range fleetSizes {
		s := New(defaults(), t0)
		batches := fleet(devices)
		now := t0
		for range 10 {
			now = now.Add(15 * time.Second)
			setTime(batches, now)
			for _, md := range batches {
				s.Observe(md, now)
			}
		}
		b.Run(fmt.Sprintf("compute/devices=%d", devices), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Evaluate(now)
			}
		})
		b.Run(fmt.Sprintf("write/devices=%d", devices), func(b *testing.B) {
			e := s.Evaluate(now)
			b.ReportAllocs()
			for b.Loop() {
				e.Metrics("")
			}
		})
	}
}
