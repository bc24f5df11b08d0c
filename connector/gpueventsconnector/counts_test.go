// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/state"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// countPage is a page with a count of XIDs.
type countPage struct {
	xids  int64
	since time.Duration // of the count, since the first page
	ahead time.Duration // by which the node's clock is wrong
}

func (b *bench) count(p countPage, begin time.Time) []string {
	b.t.Helper()
	got := brief(b.feed(one(gpu{xids: map[int64]int64{79: p.xids}, since: begin.Add(p.since)})(time.Now().Add(p.ahead))))
	return append(got, brief(b.wait(interval))...)
}

// What was counted long ago is not reported again: not where two exporters have it in turn,
// nor where the first page after a restart was lost.
func TestAnOldXIDIsNotRaised(t *testing.T) {
	for name, tt := range map[string]struct {
		pages func(i int) countPage
		want  []string
		twice bool
	}{
		"two exporters": {pages: func(i int) countPage {
			return countPage{xids: 1, since: time.Duration(i%2) * interval}
		}, twice: true},
		"two exporters, one of which knows less": {pages: func(i int) countPage {
			return countPage{xids: 4 - 3*int64(i%2), since: time.Duration(i%2) * interval}
		}, twice: true},
		"two exporters that see one XID": {pages: func(i int) countPage {
			return countPage{xids: 1 + int64(i/50), since: time.Duration(i%2) * interval}
		}, want: []string{"gpu.xid raised 79"}, twice: true},
		"the exporter is replaced": {pages: func(i int) countPage {
			return countPage{xids: 1, since: time.Duration(i/50) * 50 * interval}
		}},
		"the receiver is restarted, and its first page is lost": {pages: func(i int) countPage {
			return countPage{xids: 1, since: time.Duration(i/50) * 49 * interval}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, deviceSet)
				begin := time.Now()
				var got []string
				for i := range 100 {
					got = append(got, b.count(tt.pages(i), begin)...)
				}
				require.Equal(t, tt.want, got)
				if tt.twice {
					m, err := b.tel.GetMetric("otelcol_gpu_events_input_duplicate")
					require.NoError(t, err)
					require.Positive(t, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
					require.Equal(t, 3, b.logs.FilterMessageSnippet("two exporters count").Len(), "every ten minutes")
				}
			})
		})
	}
}

// A node's clock was a day ahead when an event was raised, and is right again.
func TestAClockThatWasAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet)
		begin, n := time.Now().Add(-time.Hour), int64(0)
		var got []string
		for i := range 400 {
			p := countPage{}
			if i < 8 {
				p.ahead = 24 * time.Hour
			}
			if i%4 == 0 {
				n++
			}
			p.xids = n
			got = append(got, b.count(p, begin)...)
		}
		require.Len(t, got, 21, "one of tomorrow, then one every five minutes")
	})
}

// Invalid numbers are counted and change nothing, and the state can be stored.
func TestInfinities(t *testing.T) {
	e := newEngine(&Config{Rules: []RuleSet{RuleSetDevice, RuleSetService}, MaxSubjects: 10, Staleness: time.Minute, Events: createDefaultConfig().(*Config).Events})
	now := time.Now()
	for i, v := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), 1e300} {
		md := pmetric.NewMetrics()
		rm := md.ResourceMetrics().AppendEmpty()
		event.PutTexts(rm.Resource().Attributes(), names.HwID, gpuA, names.K8sNodeName, "n1", names.ServiceName, "chat")
		for _, m := range []*names.Metric{&names.HwErrors, &names.GPUXIDErrors, &names.GPUXIDLast, &names.HwTemperature, &names.ServicePartial, &names.ServicePods} {
			p := m.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
			p.SetDoubleValue(v)
			p.SetTimestamp(at(float64(i)))
			event.PutTexts(p.Attributes(), names.ErrorType, names.ErrorTypeUncorrected, names.GPUXIDCode, "79")
		}
		e.TakeCounts()
		e.Consume(md, now)
		e.Finish(now)
		require.GreaterOrEqual(t, e.TakeCounts().Invalid, int64(2), v)
	}
	_, dropped, err := state.Encode(e.Save())
	require.NoError(t, err)
	require.Zero(t, dropped)
	inf := math.Inf(1)
	text, dropped, err := state.Encode(&state.State{Version: state.Version, Devices: []state.Device{{ID: "a"}, {ID: "b", ECC: &inf}, {ID: "c"}}})
	require.NoError(t, err)
	require.Equal(t, 1, dropped, "one device costs the others nothing")
	again, _, err := state.Decode(text, 10)
	require.NoError(t, err)
	require.Len(t, again.Devices, 2)
}

// A delta is the rise.
func TestDeltas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet, func(cfg *Config) {
			cfg.Events["gpu.xid"]["repeat_after"], cfg.Events["gpu.ecc.uncorrected"]["repeat_after"] = time.Duration(0), time.Duration(0)
		})
		var got []string
		for _, n := range []int64{1, 0, 1, 1} {
			md := one(gpu{xids: map[int64]int64{79: n}, ecc: &n})(time.Now())
			for _, rm := range md.ResourceMetrics().All() {
				for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
					if m.Type() == pmetric.MetricTypeSum {
						m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
					}
				}
			}
			events := append(b.feed(md), b.wait(interval)...)
			got = append(got, brief(events)...)
			for _, e := range events {
				require.NotContains(t, e.body, "since the driver was loaded", "that is not known")
			}
		}
		require.Equal(t, []string{
			"gpu.xid raised 79", "gpu.ecc.uncorrected raised", "gpu.xid raised 79", "gpu.ecc.uncorrected raised", "gpu.xid raised 79", "gpu.ecc.uncorrected raised",
		}, got)
	})
}
