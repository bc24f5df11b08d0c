// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package delivery measures what webhook deliveries cost: CPU and memory by
// number of receivers, and what a receiver that never answers does to the others.
// The receivers are a process of their own, on loopback.
package delivery

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	rounds     = 5
	deliveries = 4000 // in each round of each setup, at least
)

// TestDelivery: what the benchmarks count and time is what arrives.
func TestDelivery(t *testing.T) {
	for _, tls := range []bool{false, true} {
		s := start(t, setup{receivers: 3, tls: tls, storage: true, audit: true, path: "/test"})
		s.flood(t, 50, 3)
		s.stop()
		got, err := took()
		require.NoError(t, err)
		require.Len(t, got["/test"], 150)
		require.Positive(t, slices.Min(got["/test"]))
	}
}

// figure is the result of one round of a setup.
type figure struct {
	cpu  time.Duration // of this process, a delivery
	wall time.Duration // a delivery
	heap float64       // bytes at the most, with stacks, beside what was there before
}

// BenchmarkDeliveries is the cost of a delivery, of all setups in turns. Run it
// with -benchtime 1x -cpu 1.
func BenchmarkDeliveries(b *testing.B) {
	type named struct {
		name string
		setup
	}
	var setups []named
	for _, n := range []int{1, 10, 100} {
		for _, tls := range []bool{false, true} {
			for _, kept := range []string{"nothing", "audit", "storage+audit"} {
				if tls && kept == "audit" {
					continue
				}
				scheme := "http"
				if tls {
					scheme = "https"
				}
				setups = append(setups, named{
					fmt.Sprintf("receivers=%d/%s/%s", n, scheme, kept),
					setup{receivers: n, tls: tls, storage: kept == "storage+audit", audit: kept != "nothing", path: "/flood"},
				})
			}
		}
	}
	figures := map[string][]figure{}
	for range rounds {
		for _, s := range setups { // in turns, so that a busy minute meets all of them
			figures[s.name] = append(figures[s.name], measure(b, s.setup))
		}
	}
	for _, s := range setups {
		b.Run(s.name, func(b *testing.B) {
			of := func(get func(figure) float64) (median, least, most float64) {
				var list []float64
				for _, f := range figures[s.name] {
					list = append(list, get(f))
				}
				slices.Sort(list)
				return list[len(list)/2], list[0], list[len(list)-1]
			}
			b.ReportMetric(0, "ns/op") // means nothing here
			cpu, least, most := of(func(f figure) float64 { return float64(f.cpu.Nanoseconds()) / 1000 })
			b.ReportMetric(cpu, "cpu-us/delivery")
			b.ReportMetric(least, "cpu-us-min")
			b.ReportMetric(most, "cpu-us-max")
			b.ReportMetric(1e6/cpu, "deliveries/core-s")
			wall, _, _ := of(func(f figure) float64 { return f.wall.Seconds() })
			b.ReportMetric(1/wall, "deliveries/s")
			heap, _, _ := of(func(f figure) float64 { return f.heap / (1 << 20) })
			b.ReportMetric(heap, "MiB")
		})
	}
}

func measure(b *testing.B, s setup) figure {
	before := heap()
	sub := start(b, s)
	sub.flood(b, 5, s.receivers) // the first ones cost more
	runtime.GC()
	stop := make(chan struct{})
	peak := make(chan float64)
	go func() {
		var most float64
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most = max(most, float64(now.HeapAlloc+now.StackInuse))
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	events := max(deliveries/s.receivers, 50)
	cpu, began := cpuTime(b), time.Now()
	sub.succeeded.Store(0)
	sub.flood(b, events, s.receivers)
	n := time.Duration(sub.succeeded.Load())
	f := figure{cpu: (cpuTime(b) - cpu) / n, wall: time.Since(began) / n}
	close(stop)
	f.heap = <-peak - before
	sub.stop()
	_, err := took() // or the receivers would remember all of it
	require.NoError(b, err)
	return f
}

func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// heap is what is alive, stacks included.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return float64(now.HeapAlloc + now.StackInuse)
}

// BenchmarkMemory is what a receiver takes that has nothing to do, and what a
// delivery takes that waits because the receivers never answer, the event
// included. Run it with -benchtime 1x.
func BenchmarkMemory(b *testing.B) {
	const waiting = 1000 // deliveries to each receiver, the default limit
	for _, n := range []int{1, 10, 100} {
		for _, kept := range []bool{false, true} {
			b.Run(fmt.Sprintf("receivers=%d/storage=%t", n, kept), func(b *testing.B) {
				before := heap()
				sub := start(b, setup{receivers: n, storage: kept, audit: kept, path: hangPath})
				idle := heap()
				for i := range waiting {
					sub.send(b, i)
				}
				time.Sleep(time.Second) // all connections are there
				full := heap()
				require.Zero(b, sub.succeeded.Load()+sub.others.Load())
				sub.stop()
				b.ReportMetric(0, "ns/op") // means nothing here
				b.ReportMetric((idle-before)/1024/float64(n), "KiB/receiver")
				b.ReportMetric((full-idle)/waiting/float64(n), "B/waiting")
			})
		}
	}
}

// BenchmarkHanging is the time from an event's handing over to the arrival of its
// requests, at three exporters that get events in turns. All receivers answer at
// the first and at the second, which differ by chance alone; one of the third's
// never does: it fills its queue, its attempts time out and are tried again, and
// what does not fit is dropped. Run it with -benchtime 1x.
func BenchmarkHanging(b *testing.B) {
	b.Run("receivers=10/nothing", func(b *testing.B) { hanging(b, 10, 50, false, 60*time.Millisecond) })
	b.Run("receivers=10/storage+audit", func(b *testing.B) { hanging(b, 10, 50, true, 60*time.Millisecond) })
	b.Run("receivers=100/storage+audit", func(b *testing.B) { hanging(b, 100, 10, true, 450*time.Millisecond) })
}

// hanging gives each exporter an event every so often; the queue is
// small enough to be full for most of the run where it hangs.
func hanging(b *testing.B, n, queue int, kept bool, every time.Duration) {
	const (
		parts = 10 // of the run; one ratio for each
		send  = 20 * time.Second
	)
	paths := []string{"/first", "/second", "/hanging"}
	events := int(send / every / parts) // to each exporter in each part
	var subjects []*subject
	for i, path := range paths {
		subjects = append(subjects, start(b, setup{
			receivers: n, storage: kept, audit: kept, path: path, hanging: i == 2,
			limits: m{"queue_size": queue, "timeout": "1s"},
		}))
	}
	all := map[string][]time.Duration{}
	ratios := map[string][]float64{} // of the 99th percentiles, to the first
	for range parts {
		tick := time.NewTicker(every / time.Duration(len(paths)))
		for i := range events {
			for _, s := range subjects {
				<-tick.C
				s.send(b, i)
			}
		}
		tick.Stop()
		time.Sleep(500 * time.Millisecond)
		got, err := took()
		require.NoError(b, err)
		for i, path := range paths {
			expected := events * n
			if subjects[i].hanging {
				expected -= events
			}
			require.Equal(b, expected, len(got[path]), path)
		}
		for _, path := range paths {
			ratios[path] = append(ratios[path], quantile(got[path], .99)/quantile(got["/first"], .99))
			all[path] = append(all[path], got[path]...)
		}
	}
	for _, s := range subjects {
		s.stop()
	}
	b.ReportMetric(0, "ns/op") // means nothing here
	for _, path := range paths {
		b.ReportMetric(quantile(all[path], .5), path[1:]+"-p50-ms")
		b.ReportMetric(quantile(all[path], .99), path[1:]+"-p99-ms")
		if path == "/first" {
			continue
		}
		slices.Sort(ratios[path])
		b.ReportMetric(quantile(all[path], .5)/quantile(all["/first"], .5), path[1:]+"-p50-ratio")
		b.ReportMetric(quantile(all[path], .99)/quantile(all["/first"], .99), path[1:]+"-p99-ratio")
		b.ReportMetric(ratios[path][len(ratios[path])/2], path[1:]+"-p99-ratio-median")
		b.ReportMetric(ratios[path][0], path[1:]+"-p99-ratio-min")
		b.ReportMetric(ratios[path][parts-1], path[1:]+"-p99-ratio-max")
	}
	failed := subjects[2].others.Load()
	require.Positive(b, failed, "the receiver that hangs did not")
	b.ReportMetric(float64(failed), "failed-or-dropped")
}

// quantile sorts; it is in ms.
func quantile(list []time.Duration, q float64) float64 {
	slices.Sort(list)
	return float64(list[int(q*float64(len(list)-1))].Microseconds()) / 1000
}
