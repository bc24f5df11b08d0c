// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// fleet is whole boards and boards with replicas and instances, eight a node.
func fleet(boards int) (points []Point) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range boards {
		id := fmt.Sprintf("GPU-%08x-%04x-%04x-%04x-%012x", r.Uint32(), i&0xffff, r.IntN(1<<16), r.IntN(1<<16), r.Int64N(1<<48))
		service := fmt.Sprint("service", i%1000)
		add := func(p Point) {
			p.Node = fmt.Sprint("node", i/8)
			points = append(points, p)
		}
		switch i % 8 {
		case 0:
			for n := range 4 {
				add(replica(owned(id, fmt.Sprintf("%s::%d", id, n), service, share.Whole), 4))
			}
		case 1:
			add(instance(owned(id, id+"/1", service, share.Fraction{P: 3, Q: 7}), "3g.40gb"))
			add(instance(free(id, id+"/2", share.Fraction{P: 3, Q: 7}), "3g.40gb"))
		default:
			add(owned(id, id, service, share.Whole))
		}
	}
	return points
}

func priced() Config {
	cfg := config()
	cfg.Price = func(*Priced, int64) Price {
		return Price{prices.Rate{Nano: 2_950_000_000, Per: 1}, prices.KindList, 1 << 60}
	}
	return cfg
}

// run adds snapshots, with utilization and energy.
func run(l *Ledger, points []Point, from, to int64) {
	for at := from; at < to; at += 15 * second {
		for i := range points {
			points[i].Time = at
			l.Add(&points[i])
			if p := &points[i]; p.Part == p.Board {
				l.Utilization(p.Board, p.Board, at, 0.5)
				l.Energy(p.Board, at, float64(at-t0)*.3, 700)
			}
		}
	}
}

// Per op: one allocation point, its share of a utilization and an energy point included.
func BenchmarkAllocationPoint(b *testing.B) {
	l, points := New(priced(), t0), fleet(1000)
	run(l, points, t0, t0+5*minute)
	at := t0 + 5*minute
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += len(points) {
		run(l, points, at, at+15*second)
		at += 15 * second
	}
}

func BenchmarkDevice(b *testing.B) {
	const boards = 10_000
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		points := fleet(boards)
		l := New(priced(), t0)
		run(l, points, t0, t0+20*minute)
		points = nil
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/boards, "B/device")
		runtime.KeepAlive(l)
	}
}

func BenchmarkFlush(b *testing.B) {
	l, points := New(priced(), t0), fleet(10_000)
	run(l, points, t0, t0+20*minute)
	size := 0
	for b.Loop() {
		size = len(l.Encode())
		l.Totals()
	}
	b.ReportMetric(float64(size), "B/state")
}
