// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/holders"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/inspector"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/seriesends/endstest"
)

// flat are the points of md, one text each: attributes of the resource and the point by their
// values, the metric, the value.
func flat(md pmetric.Metrics) (all []string) {
	put := func(rm pmetric.ResourceMetrics, attrs pcommon.Map, metric string, value any, flags pmetric.DataPointFlags) {
		if flags.NoRecordedValue() {
			value = "ends"
		}
		var of []string
		for _, m := range []pcommon.Map{rm.Resource().Attributes(), attrs} {
			for k, v := range m.All() {
				of = append(of, k[strings.LastIndex(k, ".")+1:]+"="+v.AsString())
			}
		}
		slices.Sort(of)
		all = append(all, fmt.Sprintf("%s{%s} %v", metric, strings.Join(of, " "), value))
	}
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			name := strings.TrimPrefix(m.Name(), "nccl.")
			switch m.Type() {
			case pmetric.MetricTypeHistogram:
				for _, p := range m.Histogram().DataPoints().All() {
					put(rm, p.Attributes(), name, fmt.Sprintf("%d %.6g", p.Count(), p.Sum()), p.Flags())
				}
			case pmetric.MetricTypeGauge:
				for _, p := range m.Gauge().DataPoints().All() {
					put(rm, p.Attributes(), name, p.DoubleValue()+float64(p.IntValue()), p.Flags())
				}
			case pmetric.MetricTypeSum:
				for _, p := range m.Sum().DataPoints().All() {
					put(rm, p.Attributes(), name, p.IntValue(), p.Flags())
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// node is a State with what is written around it.
type node struct {
	*State
	device, user string
}

func (n *node) lines(t *testing.T, at time.Time, path string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		require.Equal(t, inspector.Fine, n.Line(path, text, at))
	}
}

func (n *node) metrics(at time.Time) pmetric.Metrics {
	return n.Metrics(at, Writer{
		Describe: func(pcommon.InstrumentationScope) {},
		Place: func(h holders.Holder, attrs pcommon.Map) {
			if n.user != "" {
				attrs.PutStr(names.SlurmJobUser, n.user)
			}
		},
		Device: func(holders.Holder) string { return n.device },
	})
}

// starting are the points with a prefix.
func starting(md pmetric.Metrics, prefix string) (all []string) {
	for _, p := range flat(md) {
		if strings.HasPrefix(p, prefix) {
			all = append(all, p)
		}
	}
	return all
}

func TestMetrics(t *testing.T) {
	n := &node{State: New(config())}
	n.lines(t, start, "/n/a_b/x.log",
		op{sequence: 8, bytes: 800, us: 100, at: start.Add(-3 * time.Second)}.String(),
		op{sequence: 9, bytes: 800, us: 300}.String(),
		op{id: "0x80", sequence: 2, bytes: 800, us: 600}.String(), // of the same label
		op{op: "AllGather", sequence: 1, bytes: 100, us: 20}.String(),
		op{op: "AlltoAll", sequence: 1, bytes: 100, us: 40}.String(),
		op{id: "0x81", name: "TP", ranks: 2, rank: 1, op: "Broadcast", bytes: 64, us: 80}.String(),
	)
	md := n.metrics(start.Add(5 * time.Second))
	const of = "communicator=8x1 name=a name=b operation="
	assert.Equal(t, []string{
		"data.age{communicator=8x1 name=a name=b rank=0} 5",
		"data.age{communicator=TP name=a name=b rank=1} 5",
		"operation.bus.bytes{" + of + "AllGather rank=0} 700",
		"operation.bus.bytes{" + of + "AllReduce rank=0} 4200",
		"operation.bus.bytes{communicator=TP name=a name=b operation=Broadcast rank=1} 64",
		"operation.bytes{" + of + "AllGather rank=0} 800",
		"operation.bytes{" + of + "AllReduce rank=0} 2400",
		"operation.bytes{communicator=TP name=a name=b operation=Broadcast rank=1} 64",
		"operation.duration{" + of + "AllGather rank=0} 1 2e-05",
		"operation.duration{" + of + "AllReduce rank=0} 3 0.001",
		"operation.duration{" + of + "AlltoAll rank=0} 1 4e-05",
		"operation.duration{communicator=TP name=a name=b operation=Broadcast rank=1} 1 8e-05",
		"operation.sequence{" + of + "AllGather rank=0} 1",
		"operation.sequence{" + of + "AllReduce rank=0} 2",
		"operation.sequence{" + of + "AlltoAll rank=0} 1",
		"operation.sequence{communicator=TP name=a name=b operation=Broadcast rank=1} 0",
	}, flat(md))
	metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	seen := map[string]bool{}
	for _, m := range metrics.All() {
		require.False(t, seen[m.Name()], "%s is there twice", m.Name())
		seen[m.Name()] = true
		if m.Type() != pmetric.MetricTypeHistogram {
			continue
		}
		for _, p := range m.Histogram().DataPoints().All() {
			assert.Equal(t, []time.Time{start, start.Add(5 * time.Second)}, []time.Time{p.StartTimestamp().AsTime(), p.Timestamp().AsTime()})
			require.Equal(t, 12, p.ExplicitBounds().Len())
			require.Equal(t, 13, p.BucketCounts().Len())
			if operation, _ := p.Attributes().Get(names.NCCLOperation); operation.Str() == "AllGather" {
				assert.EqualValues(t, 1, p.BucketCounts().At(0), "a bound is in the bucket below it")
			}
		}
	}
}

// Without a label of ranks the sums are those of all.
func TestMetricsWithoutRanks(t *testing.T) {
	cfg := config()
	cfg.RankLabel = false
	n := &node{State: New(cfg)}
	n.lines(t, start, "/n/1/x.log", op{sequence: 5, us: 100, at: start.Add(-time.Minute)}.String(), op{rank: 1, sequence: 5, us: 300}.String())
	assert.Equal(t, []string{
		"data.age{communicator=8x1 id=1} 0",
		"operation.bus.bytes{communicator=8x1 id=1 operation=AllReduce} 3670016",
		"operation.bytes{communicator=8x1 id=1 operation=AllReduce} 2097152",
		"operation.duration{communicator=8x1 id=1 operation=AllReduce} 2 0.0004",
		"operation.sequence{communicator=8x1 id=1 operation=AllReduce} 5",
	}, flat(n.metrics(start)))
}

// A process that begins again, with a new communicator of the same shape: counters go on, the
// number begins again, and what Inspector dropped before stays counted.
func TestRestartOfAProcess(t *testing.T) {
	for name, path := range map[string]string{"under another number": "/n/1/pid2.log", "under the same number": "/n/1/pid1.log"} {
		t.Run(name, func(t *testing.T) {
			n := &node{State: New(config())}
			n.lines(t, start, "/n/1/pid1.log", marker(op{}, 10), op{sequence: 900}.String(), marker(op{}, 12))
			assert.Equal(t, []string{
				"records.dropped{communicator=8x1 id=1 kind=collective rank=0} 12",
				"records.dropped{communicator=8x1 id=1 kind=point_to_point rank=0} 1",
				"records.dropped{communicator=8x1 id=1 kind=proxy rank=0} 0",
			}, starting(n.metrics(start), "records"))
			later := start.Add(20 * time.Minute) // the first one is forgotten meanwhile
			n.lines(t, start.Add(time.Minute), path, op{id: "0x99", sequence: 1, at: start.Add(time.Minute)}.String())
			n.lines(t, later, path, marker(op{id: "0x99", at: later}, 3), op{id: "0x99", sequence: 2, at: later}.String())
			md := n.metrics(later)
			assert.Equal(t, []string{"records.dropped{communicator=8x1 id=1 kind=collective rank=0} 15"}, starting(md, "records.dropped{communicator=8x1 id=1 kind=c"))
			assert.Equal(t, []string{"operation.sequence{communicator=8x1 id=1 operation=AllReduce rank=0} 2"}, starting(md, "operation.sequence"))
			assert.Equal(t, []string{"operation.duration{communicator=8x1 id=1 operation=AllReduce rank=0} 3 0.0003"}, starting(md, "operation.duration"))
			assert.NotContains(t, strings.Join(flat(md), "\n"), "ends")
			communicators, _ := n.Tracked()
			assert.Equal(t, 1, communicators)
		})
	}
}

// Series end once: when nothing arrives any more, and under the old identity when it becomes known
// whose job, or which device, it is.
func TestEnds(t *testing.T) {
	n := &node{State: New(config())}
	n.lines(t, start, "/n/1/x.log", op{}.String())
	var batches []pmetric.Metrics
	metrics := func(at time.Time) pmetric.Metrics {
		batches = append(batches, n.metrics(at))
		return batches[len(batches)-1]
	}
	metrics(start)
	n.device, n.user = "GPU-1", "ada"
	at := start.Add(time.Minute)
	assert.Equal(t, []string{
		"operation.sequence{communicator=8x1 id=1 id=GPU-1 operation=AllReduce rank=0 user=ada} 0",
		"operation.sequence{communicator=8x1 id=1 operation=AllReduce rank=0} ends",
	}, starting(metrics(at), "operation.sequence"))
	assert.NotContains(t, strings.Join(flat(metrics(at)), "\n"), "ends")

	n.device = "" // the job is over: what was written ends as it was written
	end := starting(metrics(start.Add(15*time.Minute+time.Second)), "")
	endstest.Ended(t, batches...)
	assert.Len(t, end, 5)
	for _, p := range end {
		assert.Regexp(t, `id=GPU-1 .*ends$`, p)
	}
	assert.Empty(t, flat(n.metrics(start.Add(16*time.Minute))))
	communicators, series := n.Tracked()
	assert.Zero(t, communicators+series+len(n.files)+len(n.identities))
}

// What was read after a pause of the collector and is too old is not begun.
func TestOldLines(t *testing.T) {
	n := &node{State: New(config())}
	n.lines(t, start, "/n/1/x.log", op{at: start.Add(-16 * time.Minute)}.String())
	assert.Empty(t, flat(n.metrics(start)))
}
