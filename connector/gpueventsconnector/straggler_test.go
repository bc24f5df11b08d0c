// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/metadatatest"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// clocks is a page of eight boards of a service, of which the first has that clock.
func clocks(gigahertz float64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for i := range 8 {
		rm := md.ResourceMetrics().AppendEmpty()
		a := rm.Resource().Attributes()
		for key, v := range map[string]string{
			names.K8sClusterName: "c1", names.K8sNodeName: "n1", names.HwID: fmt.Sprintf("GPU-%d", i), names.HwType: names.HwTypeGPU, names.HwModel: "NVIDIA H100",
			names.K8sNamespaceName: "ml", names.K8sPodName: "train-0", names.ServiceName: "train", names.K8sPodStartTime: "2000-01-01T00:00:00Z",
		} {
			a.PutStr(key, v)
		}
		a.PutInt(names.GPUIndex, int64(i))
		ms := rm.ScopeMetrics().AppendEmpty().Metrics()
		clock := 1.75e9 + float64(i)*1e6
		if i == 0 {
			clock = gigahertz * 1e9
		}
		for m, v := range map[*names.Metric]float64{&names.GPUClockFrequency: clock, &names.GPUUtilization: 0.97} {
			p := m.Init(ms.AppendEmpty()).AppendEmpty()
			p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
			p.SetDoubleValue(v)
			p.Attributes().PutStr(names.GPUClockDomain, "sm")
			p.Attributes().PutStr(names.HwGPUTask, "general")
		}
	}
	return md
}

// A slow board is reported with what it is compared with, and only once across restarts.
// At the speed of the others it is cleared.
func TestStraggler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		b := d.boot(t)
		run := func(gigahertz float64, minutes int) (all []occurred) {
			for range 4 * minutes {
				all = append(all, b.feed(clocks(gigahertz))...)
				all = append(all, b.wait(15*time.Second)...)
			}
			return all
		}
		events := run(1.4, 30)
		require.Len(t, events, 1)
		e := events[0]
		assert.Equal(t, "GPU 0 on n1 (GPU-0) is slower than its 7 peers in service train: its SM clock is 1.40 GHz, 20 % below their median of 1.75 GHz. "+
			"No other cause is known. It was owned by pod train-0 of service train in namespace ml when this was raised.", e.body)
		assert.Equal(t, "gpu.straggler/c1/GPU-0", e.attrs[names.GPUEventKey])
		assert.Equal(t, "INFO", e.record.SeverityText())
		assert.Equal(t, "GPU-0", e.resource[names.HwID])
		assert.Equal(t, []any{"clock", int64(7), 0.9, "train"}, []any{
			e.attrs[names.GPUStragglerCause], e.attrs[names.GPUStragglerPeers], e.attrs[names.GPUEventThreshold], e.attrs[names.ServiceName],
		})
		assert.InDelta(t, 0.8, e.attrs[names.GPUEventValue], 0.01)
		b.stop()

		b = d.boot(t)
		defer b.stop()
		assert.Empty(t, run(1.4, 40))
		events = run(1.75, 25)
		require.Len(t, events, 1)
		assert.Equal(t, names.EventCleared, events[0].state)
		assert.Equal(t, "GPU 0 on n1 (GPU-0) is no longer slower than its peers. It was owned by pod train-0 of service train in namespace ml when this was cleared.", events[0].body)
	})
}

// In a pipeline of metrics it is 1 every minute, and ends.
func TestStragglerMetric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		into, tel := new(consumertest.MetricsSink), componenttest.NewTelemetry()
		c, err := NewFactory().CreateMetricsToMetrics(t.Context(), metadatatest.NewSettings(tel), createDefaultConfig(), into)
		require.NoError(t, err)
		require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
		run := func(gigahertz float64, minutes int) (values, ends int) {
			into.Reset()
			for range 4 * minutes {
				require.NoError(t, c.ConsumeMetrics(t.Context(), clocks(gigahertz)))
				time.Sleep(15 * time.Second)
			}
			synctest.Wait()
			for _, md := range into.AllMetrics() {
				for _, rm := range md.ResourceMetrics().All() {
					for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
						dps, _ := points.Numbers(m)
						for _, p := range dps.All() {
							assert.Equal(t, names.GPUStraggler.Name, m.Name())
							assert.Equal(t, map[string]any{
								names.HwID: "GPU-0", names.K8sNamespaceName: "ml", names.ServiceName: "train", names.GPUStragglerCause: "clock",
							}, p.Attributes().AsRaw())
							if p.Flags().NoRecordedValue() {
								ends++
							} else {
								values++
								assert.Equal(t, int64(1), p.IntValue())
							}
						}
					}
				}
			}
			return values, ends
		}
		values, ends := run(1.4, 30)
		assert.InDelta(t, 15, values, 4)
		assert.Zero(t, ends)
		values, ends = run(1.75, 30)
		assert.InDelta(t, 18, values, 4)
		assert.Equal(t, 1, ends)
		require.NoError(t, c.Shutdown(t.Context()))
		require.NoError(t, tel.Shutdown(t.Context()))
	})
}

// Where pages are too rare to compare clocks that is logged, once, and nothing is raised.
func TestPagesThatAreTooRareForStragglers(t *testing.T) {
	for interval, want := range map[time.Duration]int{15 * time.Second: 0, 30 * time.Second: 0, time.Minute: 1} {
		synctest.Test(t, func(t *testing.T) {
			b := start(t)
			for range 25 * time.Minute / interval {
				events := append(b.feed(clocks(1.4)), b.wait(interval)...)
				if want > 0 {
					require.Empty(t, events)
				}
			}
			logged := b.logs.FilterMessageSnippet("clocks of GPUs are not compared").All()
			assert.Equal(t, want > 0, len(logged) > 0, "%s", interval)
			for _, entry := range logged {
				assert.Equal(t, interval, entry.ContextMap()["apart"])
			}
		})
	}
}
