// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// fleet is one scrape of nodes of eight devices, one pod a device, ten pods a
// service, one batch a node, with eight fields of each device.
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
		for f := range field(benchFields) {
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

var fleetSizes = []int{1000, 10_000, 100_000}

// benchFields are how many inputs a device of the fleet has.
const benchFields = 8

// settled is a fleet after ten scrapes, and the time then.
func settled(devices int) (*Summary, []pmetric.Metrics, time.Time) {
	cfg := defaults()
	s := New(cfg, t0)
	batches := fleet(devices)
	now := t0
	for range 10 {
		now = now.Add(15 * time.Second)
		setTime(batches, now)
		for _, md := range batches {
			s.Observe(md, now)
		}
	}
	return s, batches, now
}

// BenchmarkObserve takes in one scrape of the whole fleet, each batch right after
// it was decoded, as a receiver hands it on; see ns/point. Neither decoding nor
// collecting its garbage is timed.
func BenchmarkObserve(b *testing.B) {
	for _, devices := range fleetSizes {
		b.Run(fmt.Sprintf("pods=%d", devices), func(b *testing.B) {
			s, batches, now := settled(devices)
			wire := make([][]byte, len(batches))
			for i, md := range batches {
				var err error
				if wire[i], err = new(pmetric.ProtoMarshaler).MarshalMetrics(md); err != nil {
					b.Fatal(err)
				}
			}
			clear(batches)
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			var took time.Duration
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(15 * time.Second)
				for i := range wire {
					if i%1000 == 0 {
						runtime.GC()
					}
					md, err := new(pmetric.ProtoUnmarshaler).UnmarshalMetrics(wire[i])
					if err != nil {
						b.Fatal(err)
					}
					setTime([]pmetric.Metrics{md}, now)
					began := time.Now()
					s.Observe(md, now)
					took += time.Since(began)
				}
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N*devices*benchFields), "ns/point")
		})
	}
}

// BenchmarkEvaluate computes one evaluation of a settled fleet, without and with
// writing it as metrics; see ns/pod.
func BenchmarkEvaluate(b *testing.B) {
	for _, devices := range fleetSizes {
		s, _, now := settled(devices)
		b.Run(fmt.Sprintf("compute/pods=%d", devices), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Evaluate(now)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*devices), "ns/pod")
		})
		b.Run(fmt.Sprintf("write/pods=%d", devices), func(b *testing.B) {
			e := s.Evaluate(now)
			b.ReportAllocs()
			for b.Loop() {
				e.Metrics("")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*devices), "ns/pod")
		})
	}
}

// BenchmarkMemory is what a pod of one device with eight inputs takes between two
// evaluations; see B/pod.
func BenchmarkMemory(b *testing.B) {
	for _, devices := range fleetSizes {
		b.Run(fmt.Sprintf("pods=%d", devices), func(b *testing.B) {
			var used float64
			for b.Loop() {
				s, _, now := settled(devices)
				s.Evaluate(now)
				used = float64(heap())
				runtime.KeepAlive(s)
				s = nil
				used -= float64(heap())
			}
			b.ReportMetric(used/float64(devices), "B/pod")
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
