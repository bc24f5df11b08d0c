// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/state"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/otlpseeds"
)

// TestOrderAndGroupingDoNotMatter: the points of one time may come in any order
// and in any batches.
func TestOrderAndGroupingDoNotMatter(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		begin := time.Now()
		var scrapes []pmetric.Metrics
		for i := range 40 {
			scrapes = append(scrapes, randomScrape(r, begin.Add(time.Duration(i)*interval)))
		}
		whole := eventsOf(begin, scrapes, func(md pmetric.Metrics) []pmetric.Metrics { return []pmetric.Metrics{md} })
		split := eventsOf(begin, scrapes, func(md pmetric.Metrics) []pmetric.Metrics { return shuffle(r, md) })
		require.Equal(t, whole, split, "seed %d", seed)
		if seed == 0 {
			require.NotEmpty(t, whole)
		}
	}
}

// randomScrape is a page on which everything may be the matter.
func randomScrape(r *rand.Rand, at time.Time) pmetric.Metrics {
	p := page{at: at, node: "n1", down: r.IntN(12) == 0, frozen: r.IntN(4) == 0}
	for i := range 4 {
		if r.IntN(3) == 0 && i > 1 {
			continue
		}
		ecc := int64(r.IntN(3))
		g := gpu{
			id: fmt.Sprint("GPU-", i), pod: fmt.Sprint("chat-", r.IntN(2)), ecc: &ecc,
			hot: 75 + 20*float64(r.IntN(4))/3, hbm: 90 + float64(r.IntN(20)), xids: map[int64]int64{31: int64(r.IntN(3)), 79: int64(r.IntN(2))},
			values: map[*names.Metric]float64{
				&names.GPUMemoryUsage: float64(90+r.IntN(10)) * 1e6, &names.GPUMemoryLimit: 100e6,
				&names.GPURowRemapFailure: float64(r.IntN(2)), &names.GPUXIDLast: float64([]int{0, 31, 79}[r.IntN(3)]),
			},
			throttle: [][]string{{}, {"hw_thermal"}, {"sw_thermal"}, {"hw_power_brake"}}[r.IntN(4)],
		}
		if r.IntN(5) == 0 {
			g.xids = nil
		}
		p.gpus = append(p.gpus, g)
	}
	return scrape(p)
}

// shuffle takes a batch to pieces of one point each, and makes new batches.
func shuffle(r *rand.Rand, md pmetric.Metrics) []pmetric.Metrics {
	var pieces []pmetric.ResourceMetrics
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			piece := pmetric.NewResourceMetrics()
			rm.Resource().CopyTo(piece.Resource())
			m.CopyTo(piece.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty())
			pieces = append(pieces, piece)
		}
	}
	r.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	out := []pmetric.Metrics{pmetric.NewMetrics()}
	for _, p := range pieces {
		if r.IntN(10) == 0 {
			out = append(out, pmetric.NewMetrics())
		}
		p.MoveTo(out[len(out)-1].ResourceMetrics().AppendEmpty())
	}
	return out
}

// eventsOf feeds every scrape, in the batches that split makes of it, and returns
// the events.
func eventsOf(begin time.Time, scrapes []pmetric.Metrics, split func(pmetric.Metrics) []pmetric.Metrics) (events []string) {
	cfg := createDefaultConfig().(*Config)
	cfg.Rules = []RuleSet{RuleSetDevice, RuleSetService}
	// Short, so that a lot happens.
	cfg.Events["gpu.temperature"]["high_for"], cfg.Events["gpu.temperature"]["critical_for"] = 30*time.Second, 15*time.Second
	cfg.Events["gpu.memory.pressure"]["high_for"], cfg.Events["gpu.memory.pressure"]["critical_for"] = 30*time.Second, 15*time.Second
	cfg.Events["gpu.throttle"]["for"], cfg.Events["gpu.throttle"]["clear_for"] = 30*time.Second, 15*time.Second
	cfg.Events["gpu.exporter.down"]["for"], cfg.Events["gpu.device.lost"]["scrapes"] = 15*time.Second, 2
	cfg.Events["gpu.xid"]["repeat_after"] = time.Minute
	e := newEngine(cfg)
	for i, md := range scrapes {
		now := begin.Add(time.Duration(i) * interval)
		whole := pmetric.NewMetrics()
		md.CopyTo(whole)
		for _, b := range split(whole) {
			e.Consume(b, now)
		}
		for s := 1; s < int(interval/time.Second); s++ {
			e.Tick(now.Add(time.Duration(s) * time.Second))
		}
		first := len(events)
		for _, ev := range e.Take(nil) {
			attrs := pcommon.NewMap()
			for _, put := range ev.Details {
				put(attrs)
			}
			events = append(events, fmt.Sprint(i, " ", ev.At, " ", ev.Key, " ", ev.State, " ", ev.Severity, " ", ev.Body, " ", attrs.AsRaw()))
		}
		slices.Sort(events[first:])
	}
	return events
}

func FuzzConsumeMetrics(f *testing.F) {
	marshal := func(md pmetric.Metrics) []byte {
		text, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
		if err != nil {
			f.Fatal(err)
		}
		return text
	}
	r := rand.New(rand.NewPCG(1, 2))
	f.Add(marshal(randomScrape(r, time.Unix(1e9, 0))), marshal(randomScrape(r, time.Unix(1e9+15, 0))), uint16(15))
	f.Add(marshal(batch(evaluated{service: chat, at: 10, partial: 1, missing: []string{"a"}, idle: 2})), marshal(batch(evaluated{service: chat, at: 9, stale: true})), uint16(1))
	f.Add(marshal(newFleet("n1").received(time.Unix(1e9, 0))), marshal(nodeReport(time.Unix(1, 0), "", map[*names.Metric]float64{&names.GPUNodeSchedulable: 0})), uint16(200))
	for _, odd := range otlpseeds.Metrics(time.Unix(1e9, 0)) {
		f.Add(odd, odd, uint16(1))
	}
	cfg := createDefaultConfig().(*Config)
	cfg.Rules, cfg.MaxSubjects = []RuleSet{RuleSetDevice, RuleSetService}, 5
	f.Fuzz(func(t *testing.T, a, b []byte, seconds uint16) {
		e := newEngine(cfg)
		now := time.Unix(1e9, 0)
		for _, text := range [][]byte{a, b, a} {
			md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(text)
			if err != nil {
				return
			}
			e.Consume(md, now)
			for range seconds % 300 {
				now = now.Add(time.Second)
				e.Tick(now)
			}
		}
		for kind, n := range e.Subjects() {
			require.LessOrEqual(t, n, 5, kind)
		}
		require.LessOrEqual(t, e.Raised(), 5)
		logs := plog.NewLogs()
		for _, ev := range e.Take(nil) {
			require.NoError(t, ev.Write(logs, 1, "scope", "v"))
			require.LessOrEqual(t, len(ev.Key), event.MaxKey)
			require.NotEmpty(t, ev.Body)
		}
		saved := e.Save()
		require.Len(t, saved.Raised, e.Raised())
		text, _, err := state.Encode(saved)
		require.NoError(t, err)
		again, refused, err := state.Decode(text, 5)
		require.NoError(t, err)
		require.Zero(t, refused)
		restored := newEngine(cfg)
		restored.Restore(again, now)
		require.Equal(t, e.Raised(), restored.Raised())
	})
}

// fleetPages are the pages of a fleet in one batch.
func fleetPages(gpus int, at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for n := range gpus / 8 {
		nodePages(n, at).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
	}
	return md
}

// nodePages is the page of an exporter with 8 GPUs, each of a pod, with 60 points of which
// about half are readings of a rule.
func nodePages(n int, at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	p := page{at: at, node: fmt.Sprint("node-", n)}
	for i := range 8 {
		zero := int64(0)
		g := gpu{
			id: fmt.Sprintf("GPU-%08d-%d", n, i), pod: fmt.Sprintf("chat-7d9c6b5f4-%d-%d", n, i), hot: 60, hbm: 70, ecc: &zero, throttle: []string{},
			values: map[*names.Metric]float64{
				&names.GPUMemoryUsage: 1e9, &names.GPUMemoryLimit: 2e9, &names.GPUMemoryUtilization: 0.5,
				&names.GPURowRemapFailure: 0, &names.GPUXIDLast: 0,
			},
			points: []reading{
				{&names.GPUClockFrequency, 1.7e9, []string{names.GPUClockDomain, "sm"}},
				{&names.GPUClockFrequency, 2.6e9, []string{names.GPUClockDomain, "memory"}},
				{&names.GPUPowerLimit, 700, []string{names.GPUPowerLimitKind, "enforced"}},
				{&names.GPUThrottleDuration, 0, []string{names.GPUThrottleReason, "power"}},
				{&names.GPUThrottleDuration, 0, []string{names.GPUThrottleReason, "thermal"}},
			},
		}
		for k := range 39 {
			g.values[&names.Metric{Name: fmt.Sprint("dcgm.field_", k), Unit: "1"}] = 1
		}
		p.gpus = append(p.gpus, g)
	}
	p.add(md)
	return md
}

// BenchmarkConsume reads one interval of a fleet of 10,000 GPUs, one page at a time, each right
// after it was decoded, and runs the ticks until the next interval.
func BenchmarkConsume(b *testing.B) {
	const nodes = 1250
	pages := make([][]byte, nodes)
	perPage := 0
	for n := range pages {
		md := nodePages(n, time.Now())
		perPage = md.DataPointCount()
		pages[n], _ = new(pmetric.ProtoMarshaler).MarshalMetrics(md)
	}
	for _, sets := range [][]RuleSet{{RuleSetDevice}, {RuleSetService}, {RuleSetDevice, RuleSetService}} {
		b.Run(fmt.Sprint(sets), func(b *testing.B) {
			cfg := createDefaultConfig().(*Config)
			cfg.Rules = sets
			e := newEngine(cfg)
			now := time.Now()
			next := func(timed bool) {
				now = now.Add(interval)
				for _, page := range pages {
					md, err := new(pmetric.ProtoUnmarshaler).UnmarshalMetrics(page)
					require.NoError(b, err)
					setTime(md, pcommon.NewTimestampFromTime(now))
					if timed {
						b.StartTimer()
					}
					e.Consume(md, now)
					b.StopTimer()
				}
				if timed {
					b.StartTimer()
				}
				for s := range 15 {
					e.Tick(now.Add(time.Duration(s) * time.Second))
				}
				b.StopTimer()
			}
			b.StopTimer()
			before := heap()
			next(false)
			next(false)
			b.ReportMetric(float64(heap()-before)/(8*nodes), "B/device")
			for range b.N {
				next(true)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(nodes*perPage), "ns/point")
			require.Zero(b, e.Waiting())
			runtime.KeepAlive(e)
		})
	}
}

func setTime(md pmetric.Metrics, at pcommon.Timestamp) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				var points pmetric.NumberDataPointSlice
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					points = m.Gauge().DataPoints()
				case pmetric.MetricTypeSum:
					points = m.Sum().DataPoints()
				}
				for _, p := range points.All() {
					p.SetTimestamp(at)
				}
			}
		}
	}
}

// TestUnreadPointsCostNoMemory: a steady fleet allocates nothing.
func TestUnreadPointsCostNoMemory(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Rules = []RuleSet{RuleSetDevice, RuleSetService}
	e := newEngine(cfg)
	now := time.Now()
	md := fleetPages(16, now)
	next := func() {
		now = now.Add(interval)
		setTime(md, pcommon.NewTimestampFromTime(now))
		e.Consume(md, now)
		e.Tick(now.Add(2 * time.Second))
	}
	next()
	next()
	require.Zero(t, testing.AllocsPerRun(100, next))
}
