// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"cmp"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/board"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// wellBoards are pages of boards that are well, with every input of the reasons against
// them, eight boards a node.
func wellBoards(boards int, at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for n := range boards {
		rm := md.ResourceMetrics().AppendEmpty()
		attrs := rm.Resource().Attributes()
		attrs.PutStr(names.K8sClusterName, "c1")
		attrs.PutStr(names.K8sNodeName, fmt.Sprint("node-", n/8))
		attrs.PutStr(names.HwID, fmt.Sprint("GPU-", n))
		attrs.PutStr(names.HwModel, "NVIDIA H100 80GB HBM3")
		metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
		dps := map[string]pmetric.NumberDataPointSlice{}
		point := func(in *rule.Input, value, where string) {
			if _, is := dps[in.Metric.Name]; !is {
				dps[in.Metric.Name] = in.Metric.Init(metrics.AppendEmpty())
			}
			p := dps[in.Metric.Name].AppendEmpty()
			p.SetTimestamp(pcommon.NewTimestampFromTime(at))
			p.SetIntValue(0)
			if value != "" {
				p.Attributes().PutStr(in.Attribute, value)
			}
			if where != "" {
				p.Attributes().PutStr(in.Where.Attribute, where)
			}
		}
		inputs := board.Counters[:]
		for _, r := range board.Reasons {
			inputs = append(inputs, r.Reads...)
		}
		seen := map[string]bool{}
		for i := range inputs {
			in := &inputs[i]
			where := []string{""}
			if in.Where != nil {
				if where = in.Where.Is; where == nil {
					where = []string{"pcie", "nvlink", "pmu", "mcu", "mem", "sm", "inforom", "driver", "all"}
				}
			}
			for _, value := range append([]string{cmp.Or(append(in.Values, "")...)}, in.Values[min(1, len(in.Values)):]...) {
				for _, w := range where {
					if key := fmt.Sprint(in.Metric.Name, value, w); !seen[key] {
						seen[key] = true
						point(in, value, w)
					}
				}
			}
		}
	}
	return md
}

// BenchmarkHealth is what judging boards costs that are well: of the points that it
// reads, and of the memory of a board.
func BenchmarkHealth(b *testing.B) {
	const boards = 2000
	for _, on := range []bool{false, true} {
		b.Run(map[bool]string{false: "off", true: "on"}[on], func(b *testing.B) {
			cfg := createDefaultConfig().(*Config)
			cfg.Rules = []RuleSet{RuleSetDevice}
			cfg.Events[names.EventHealth][rule.Enabled] = on
			now := time.Now()
			md := wellBoards(boards, now)
			before := heap()
			e := newEngine(cfg)
			feed := func() {
				now = now.Add(interval)
				setTime(md, pcommon.NewTimestampFromTime(now))
				b.StartTimer()
				e.Consume(md, now)
				e.Tick(now.Add(2 * time.Second))
				b.StopTimer()
			}
			feed()
			used := heap() - before
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				feed()
			}
			b.ReportMetric(float64(used)/boards, "B/board")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(md.DataPointCount()), "ns/point")
			b.ReportMetric(float64(md.DataPointCount())/boards, "points/board")
			require.Equal(b, boards, e.Subjects()["device"])
			runtime.KeepAlive(md)
		})
	}
}
