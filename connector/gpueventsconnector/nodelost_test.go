// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// fleet is what a gateway receives: nodes with two GPUs each, that one service's pods
// hold, and the summary's evaluations of it.
type fleet struct {
	cordoned map[string]bool
	silent   map[string]bool
	nodes    []string
}

func (f *fleet) received(at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for _, n := range f.nodes {
		if f.silent[n] {
			continue
		}
		page{at: at, node: n, gpus: []gpu{{id: "GPU-0-" + n, pod: "chat-" + n}, {id: "GPU-1-" + n, pod: "chat-" + n}}}.add(md)
		on := 1.
		if f.cordoned[n] {
			on = 0
		}
		nodeReport(at, n, map[*names.Metric]float64{&names.GPUNodeSchedulable: on}).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
	}
	return md
}

// run lets the fleet go on for n intervals.
func (f *fleet) run(b *bench, n int) (all []occurred) {
	for range n {
		all = append(all, b.feed(f.received(time.Now()))...)
		all = append(all, b.wait(interval)...)
	}
	return all
}

func newFleet(nodes ...string) *fleet {
	return &fleet{cordoned: map[string]bool{}, silent: map[string]bool{}, nodes: nodes}
}

func TestNodeLostStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStory(start(t))
		f := newFleet("n1", "n2", "n3")
		s.note(f.run(s.bench, 2))
		s.narrate("n2 is silent for two minutes; n3 was cordoned before")
		f.cordoned["n3"] = true
		s.note(f.run(s.bench, 1))
		f.silent["n2"], f.silent["n3"] = true, true
		s.note(f.run(s.bench, 10))
		s.narrate("both are back")
		clear(f.silent)
		s.note(f.run(s.bench, 1))
		s.golden("node_lost")
	})
}

// data is an evaluation of the service chat: how many of its pods are missing.
func data(at time.Time, missing, reporting int64) pmetric.Metrics {
	e := evaluated{service: chat, at: int(at.Unix()), nothingFresh: true, reporting: reporting, idle: -1}
	for i := range missing {
		e.missing = append(e.missing, fmt.Sprint("chat-", i))
	}
	if missing > 0 {
		e.partial = 1
	}
	e.ratio = float64(missing) / float64(max(1, missing+reporting))
	return batch(e)
}

func TestNoDataAndIdleStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStory(start(t))
		s.narrate("2 of 2 pods are missing: both events, for both are so")
		s.every(interval, 1, func(at time.Time) pmetric.Metrics { return data(at, 0, 2) })
		s.every(interval, 2, func(at time.Time) pmetric.Metrics { return data(at, 2, 0) })
		s.narrate("nothing is settled: nothing is known of data")
		s.every(interval, 2, func(at time.Time) pmetric.Metrics { return data(at, 0, 0) })
		s.narrate("one pod reports")
		s.every(interval, 1, func(at time.Time) pmetric.Metrics { return data(at, 1, 1) })
		s.narrate("no pods again, and the service is forgotten")
		s.every(interval, 1, func(at time.Time) pmetric.Metrics { return data(at, 2, 0) })
		s.every(interval, 1, func(at time.Time) pmetric.Metrics {
			return batch(evaluated{service: chat, at: int(at.Unix()), stale: true})
		})
		s.narrate("idle GPUs, more of them, none")
		for _, n := range []int64{0, 2, 5, 0} {
			s.every(interval, 1, func(at time.Time) pmetric.Metrics {
				return batch(evaluated{service: chat, at: int(at.Unix()), reporting: 2, idle: n})
			})
		}
		s.golden("no_data_idle")
	})
}

// A service with all of its nodes lost is named in their events.
func TestNoDataBecauseOfANode(t *testing.T) {
	for _, tt := range []struct {
		name string
		then func(*fleet) // after n1 fell silent
		want []string
	}{
		{"lost", func(*fleet) {}, []string{"gpu.service.partial raised", "gpu.node.lost raised"}},
		{"it comes back without data", func(f *fleet) { clear(f.silent) }, []string{"gpu.service.partial raised", "gpu.service.no_data raised"}},
		{"another node of it lives", func(f *fleet) { f.nodes = append(f.nodes, "n9") },
			[]string{"gpu.service.partial raised", "gpu.service.no_data raised", "gpu.node.lost raised"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t)
				f := newFleet("n1")
				require.Empty(t, f.run(b, 3))
				f.silent["n1"] = true
				require.Empty(t, f.run(b, 4))
				got := brief(b.feed(data(time.Now(), 2, 0)))
				tt.then(f)
				for range 10 {
					got = append(got, brief(f.run(b, 1))...)
					got = append(got, brief(b.feed(data(time.Now(), 2, 0)))...)
				}
				require.Equal(t, tt.want, got)
			})
		})
	}
	t.Run("cordoned", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t)
			f := newFleet("n1")
			f.cordoned["n1"] = true
			require.Empty(t, f.run(b, 3))
			f.silent["n1"] = true
			require.Empty(t, f.run(b, 4))
			require.Equal(t, []string{"gpu.service.partial raised", "gpu.service.no_data raised"}, brief(b.feed(data(time.Now(), 2, 0))),
				"nothing else will tell of it")
		})
	})
}

// What is no telemetry of GPUs makes no node known, nor does a kubelet alone, and the
// end of a series is no sign of life.
func TestWhatANodeIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		md := nodeReport(time.Now(), "app-1", map[*names.Metric]float64{{Name: "http.server.requests", Unit: "1"}: 1})
		require.Empty(t, b.feed(md))
		require.Empty(t, b.feed(nodeReport(time.Now(), "kubelet-1", map[*names.Metric]float64{&names.GPUAllocation: 1})))
		f := newFleet("n1")
		require.Empty(t, f.run(b, 1))
		var got []string
		for range 10 {
			got = append(got, brief(b.feed(scrape2(time.Now(), gpu{id: gpuA, marker: true})))...)
			got = append(got, brief(b.wait(interval))...)
		}
		require.Equal(t, []string{"gpu.node.lost raised"}, got)
		require.Equal(t, 1, b.c.engine.Subjects()["node"])
	})
}

// scrape2 is a page without the receiver's metrics of the exporter.
func scrape2(at time.Time, gpus ...gpu) pmetric.Metrics {
	md := scrape(page{at: at, node: "n1", gpus: gpus})
	first := true
	md.ResourceMetrics().RemoveIf(func(pmetric.ResourceMetrics) bool {
		was := first
		first = false
		return was
	})
	return md
}
