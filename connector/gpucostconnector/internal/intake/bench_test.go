// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/pricing"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// sent is what agents send about boards, eight a node: one of them in replicas, one in
// instances, a pod for every two of the others.
func sent(boards int) (allocations, telemetry pmetric.Metrics, points int) {
	a, v := newBatch(), newBatch()
	for i := range boards {
		node, id := fmt.Sprint("node", i/8), gpu(i)
		owner := pod(fmt.Sprint("service", i/2%1000))
		owner["k8s.pod.name"] = fmt.Sprint("pod-5c7b9d8f64-", i/2)
		owner["k8s.deployment.name"] = owner["service.name"]
		owner["k8s.pod.start_time"] = "2026-11-23T13:25:10Z"
		board := device(node, id, h100, attrs{"hw.vendor": "NVIDIA", "gpu.index": i % 8, "hw.driver_version": "580.126.09"})
		switch i % 8 {
		case 0:
			for n := range 4 {
				a.holds(node, t0, owner, fmt.Sprintf("%s::%d", id, n), .25, attrs{"gpu.sharing": "time_slicing"})
			}
			points += 4
			v.busy(board, t0, .5).burnt(board, t0, 0)
		case 1:
			a.holds(node, t0, owner, id+"/1", 1).free(node, t0, id+"/2")
			points += 2
			for n := 1; n <= 2; n++ {
				v.busy(device(node, fmt.Sprint(id, "/", n), h100, instanceOf(id, "3g.40gb")), t0, .5)
			}
			v.burnt(board, t0, 0)
		default:
			a.holds(node, t0, owner, id, 1)
			points++
			v.busy(device(node, id, h100, owner), t0, .5).burnt(board, t0, 0)
		}
		if i%8 == 0 {
			a.info(node, t0, attrs{"host.type": "gpu-h100-sxm_8gpu", "cloud.region": "eu-north1"})
		}
	}
	return a.md, v.md, points
}

// move gives all points a time.
func move(md pmetric.Metrics, at int64) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				dps, _ := points.Numbers(m)
				for _, p := range dps.All() {
					p.SetTimestamp(pcommon.Timestamp(at * 1e6))
					if m.Name() == names.HwEnergy.Name {
						p.SetDoubleValue(float64(at-t0) / 2)
					}
				}
			}
		}
	}
}

func benchIntake(boards int) *Intake {
	book, err := prices.New("USD", []prices.RuleConfig{{Match: map[string]string{"host.type": "gpu-h100-*"}, InstanceHour: "23.60", GPUs: 8}})
	if err != nil {
		panic(err)
	}
	cfg, lc := config(), ledgerConfig(pricing.New(book, nil))
	cfg.MaxDevices, lc.MaxBoards = 2*boards, 2*boards
	return New(cfg, ledger.New(lc, t0), time.UnixMilli(t0))
}

// nodes are what agents send, one batch of each kind for each node of eight boards.
type nodes struct {
	allocations, telemetry []pmetric.Metrics
	points, boards         int
}

func sentByNodes(boards int) (all nodes) {
	allocations, telemetry, points := sent(boards)
	all.points, all.boards = points, boards
	split := func(md pmetric.Metrics) (out []pmetric.Metrics) {
		last := ""
		for _, rm := range md.ResourceMetrics().All() {
			node, _ := rm.Resource().Attributes().Get(names.K8sNodeName)
			if node.Str() != last {
				out, last = append(out, pmetric.NewMetrics()), node.Str()
			}
			rm.CopyTo(out[len(out)-1].ResourceMetrics().AppendEmpty())
		}
		return out
	}
	all.allocations, all.telemetry = split(allocations), split(telemetry)
	return all
}

// read reads the batches at a time, and returns how long it took.
func read(x *Intake, batches []pmetric.Metrics, at int64) (took time.Duration) {
	for _, md := range batches {
		move(md, at)
		began := time.Now()
		x.Read(md, time.UnixMilli(at))
		took += time.Since(began)
	}
	return took
}

func benchRead(b *testing.B, ops func(nodes) int, timed func(allocations, telemetry time.Duration) time.Duration) {
	all := sentByNodes(1000)
	x, at, took := benchIntake(1000), t0, time.Duration(0)
	step := func() time.Duration {
		telemetry := read(x, all.telemetry, at)
		allocations := read(x, all.allocations, at)
		at += 15 * second
		return timed(allocations, telemetry)
	}
	for range 100 {
		step()
	}
	b.ReportAllocs()
	b.ResetTimer()
	rounds := b.N/ops(all) + 1
	for range rounds {
		took += step()
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(rounds*ops(all)), "ns/op")
}

// Per op: one point of gpu.allocation.
func BenchmarkAllocationPoint(b *testing.B) {
	benchRead(b, func(n nodes) int { return n.points }, func(allocations, _ time.Duration) time.Duration { return allocations })
}

// Per op: what one board sends beside gpu.allocation.
func BenchmarkTelemetry(b *testing.B) {
	benchRead(b, func(n nodes) int { return n.boards }, func(_, telemetry time.Duration) time.Duration { return telemetry })
}

// What the intake and the ledger keep of a board.
func BenchmarkDevice(b *testing.B) {
	const boards = 10_000
	for b.Loop() {
		allocations, telemetry, _ := sent(boards)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		x := benchIntake(boards)
		for at := t0; at < t0+20*minute; at += 15 * second {
			move(telemetry, at)
			move(allocations, at)
			x.Read(telemetry, time.UnixMilli(at))
			x.Read(allocations, time.UnixMilli(at))
		}
		x.resources = nil
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/boards, "B/device")
		runtime.KeepAlive(x)
		runtime.KeepAlive(allocations)
		runtime.KeepAlive(telemetry)
	}
}
