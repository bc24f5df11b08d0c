// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// utilBatchAt is one utilization point of each of these pods of service shop/api.
func utilBatchAt(at time.Time, pods ...string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for _, pod := range pods {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr(names.K8sNamespaceName, "shop")
		rm.Resource().Attributes().PutStr(names.ServiceName, "api")
		rm.Resource().Attributes().PutStr(names.K8sPodName, pod)
		dp := names.GPUUtilization.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
		dp.Attributes().PutStr(names.HwID, "GPU-"+pod)
		dp.Attributes().PutStr(names.HwGPUTask, "general")
		dp.SetTimestamp(pcommon.NewTimestampFromTime(at))
		dp.SetDoubleValue(0.5)
	}
	return md
}

// restingBatch is what nvml reports of the GPUs of these pods while it does not read them, so that
// they can be suspended.
func restingBatch(at time.Time, pods ...string) pmetric.Metrics {
	md := utilBatchAt(at, pods...)
	for _, rm := range md.ResourceMetrics().All() {
		metrics := rm.ScopeMetrics().At(0).Metrics()
		hwID, _ := numbers(metrics.At(0)).At(0).Attributes().Get(names.HwID)
		metrics.RemoveIf(func(pmetric.Metric) bool { return true })
		dp := names.GPUDeviceSuspended.Init(metrics.AppendEmpty()).AppendEmpty()
		dp.Attributes().PutStr(names.HwID, hwID.Str())
		dp.SetTimestamp(pcommon.NewTimestampFromTime(at))
		dp.SetIntValue(0)
	}
	return md
}

// numbers returns the points of a gauge or a sum.
func numbers(m pmetric.Metric) pmetric.NumberDataPointSlice {
	if m.Type() == pmetric.MetricTypeGauge {
		return m.Gauge().DataPoints()
	}
	return m.Sum().DataPoints()
}

// reported is what an evaluation reported, by "namespace/service[/pod] metric [attribute]".
type reported struct {
	values map[string]float64
	ended  map[string]bool
}

// flatten reads one evaluation; all its points have this time.
func flatten(t *testing.T, md pmetric.Metrics, at time.Time) reported {
	out := reported{values: map[string]float64{}, ended: map[string]bool{}}
	for _, rm := range md.ResourceMetrics().All() {
		res := rm.Resource().Attributes()
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			points := numbers(m)
			ends := 0
			for _, dp := range points.All() {
				require.Equal(t, pcommon.NewTimestampFromTime(at), dp.Timestamp())
				for k, v := range res.All() {
					pv, ok := dp.Attributes().Get(k)
					require.True(t, ok && pv.Equal(v), "%s: %s of the resource is on the point", m.Name(), k)
				}
				key := seriesKey(m.Name(), dp.Attributes())
				require.NotContains(t, out.values, key)
				require.NotContains(t, out.ended, key)
				switch {
				case dp.Flags().NoRecordedValue():
					out.ended[key] = true
					ends++
				case dp.ValueType() == pmetric.NumberDataPointValueTypeInt:
					out.values[key] = float64(dp.IntValue())
				default:
					out.values[key] = dp.DoubleValue()
				}
			}
			require.True(t, ends == 0 || ends == points.Len(), "%s: ends travel alone", m.Name())
		}
	}
	return out
}

func seriesKey(metric string, attrs pcommon.Map) string {
	get := func(k string) string {
		if v, ok := attrs.Get(k); ok {
			return v.Str()
		}
		return "" // the settings are of no service
	}
	key := get(names.K8sNamespaceName) + "/" + get(names.ServiceName)
	if c, ok := attrs.Get(names.K8sClusterName); ok {
		key = c.Str() + ":" + key
	}
	if p, ok := attrs.Get(names.K8sPodName); ok {
		key += "/" + p.Str()
	}
	key += " " + metric
	for _, k := range []string{names.GPUPodState, names.GPUDeviceState, names.GPUPipe} {
		if v, ok := attrs.Get(k); ok {
			key += " " + v.Str()
		}
	}
	return key
}

// has asserts values of service shop/api, by metric without "gpu.service.".
func (s reported) has(t *testing.T, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		got, ok := s.values["shop/api gpu.service."+name]
		require.True(t, ok, "%s is absent", name)
		require.InDelta(t, v, got, 1e-9*math.Max(1, math.Abs(v)), name)
	}
}

// lacks asserts that series of service shop/api are absent.
func (s reported) lacks(t *testing.T, absent ...string) {
	t.Helper()
	for _, name := range absent {
		require.NotContains(t, s.values, "shop/api gpu.service."+name)
	}
}

// averages are the series that are absent where nothing can be averaged.
var averages = []string{
	"utilization", "sm.active", "dram.active", "pipe.active tensor", "pipe.active fp16", "pipe.active fp32",
	"pod.memory.usage", "pod.memory.limit", "pod.power", "memory.usage", "memory.limit", "power",
	"utilization.min", "utilization.max", "data.age",
}
