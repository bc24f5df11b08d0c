// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/metadata"
)

// inputs are six metrics with eight points that the summary reads.
var inputs = []struct {
	metric *names.Metric
	attr   string
	values []string
}{
	{&names.GPUUtilization, names.HwGPUTask, []string{"general"}},
	{&names.GPUSMActive, "", []string{""}},
	{&names.GPUDRAMActive, "", []string{""}},
	{&names.GPUPipeActive, names.GPUPipe, []string{"tensor", "fp16", "fp32"}},
	{&names.GPUMemoryUsage, "", []string{""}},
	{&names.GPUMemoryLimit, "", []string{""}},
}

// nodeBatch is the telemetry of a node of eight devices, each held by a pod of its
// own: eight points a device that the summary reads, and others that it does not.
func nodeBatch(node, others int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for i := range 8 {
		dev := node*8 + i
		id := fmt.Sprintf("GPU-6f3c1a52-0000-4000-8000-%012d", dev)
		service := fmt.Sprint("service-", dev/10)
		rm := md.ResourceMetrics().AppendEmpty()
		attrs := rm.Resource().Attributes()
		attrs.PutStr(names.K8sClusterName, "prod")
		attrs.PutStr(names.K8sNamespaceName, "inference")
		attrs.PutStr(names.K8sPodName, fmt.Sprintf("%s-7d9c6b5f4-%05d", service, dev))
		attrs.PutStr(names.ServiceName, service)
		ms := rm.ScopeMetrics().AppendEmpty().Metrics()
		for _, in := range inputs {
			points := in.metric.Init(ms.AppendEmpty())
			for _, value := range in.values {
				dp := points.AppendEmpty()
				dp.Attributes().PutStr(names.HwID, id)
				if in.attr != "" {
					dp.Attributes().PutStr(in.attr, value)
				}
				dp.SetDoubleValue(0.5)
			}
		}
		for other := range others {
			m := ms.AppendEmpty()
			m.SetName(fmt.Sprint("dcgm.field_", other))
			dp := m.SetEmptyGauge().DataPoints().AppendEmpty()
			dp.Attributes().PutStr(names.HwID, id)
			dp.SetDoubleValue(1)
		}
	}
	return md
}

// BenchmarkConsume takes in scrapes of 10,000 pods, a node at a time, right after
// it was decoded, and passes them on to a consumer that does nothing: the input of
// the summary alone, and all of 60 points a device. Neither
// decoding nor collecting its garbage is timed.
func BenchmarkConsume(b *testing.B) {
	for _, others := range []int{0, 52} {
		b.Run(fmt.Sprintf("points=%d", 8+others), func(b *testing.B) {
			wire := make([][]byte, 1250)
			for node := range wire {
				var err error
				wire[node], err = new(pmetric.ProtoMarshaler).MarshalMetrics(nodeBatch(node, others))
				require.NoError(b, err)
			}
			cfg := createDefaultConfig().(*Config)
			p, err := newProcessor(processortest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
			require.NoError(b, err)
			require.NoError(b, p.Start(b.Context(), componenttest.NewNopHost()))
			defer func() { require.NoError(b, p.Shutdown(context.Background())) }()

			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			var took time.Duration
			points := 0
			for b.Loop() {
				runtime.GC()
				for _, encoded := range wire {
					md, err := new(pmetric.ProtoUnmarshaler).UnmarshalMetrics(encoded)
					require.NoError(b, err)
					now := pcommon.NewTimestampFromTime(time.Now())
					for _, rm := range md.ResourceMetrics().All() {
						for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
							for _, dp := range numbers(m).All() {
								dp.SetTimestamp(now)
							}
						}
					}
					points += md.DataPointCount()
					began := time.Now()
					err = p.ConsumeMetrics(context.Background(), md)
					took += time.Since(began)
					require.NoError(b, err)
				}
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(points), "ns/point")
			b.ReportMetric(float64(points)/took.Seconds()/1e6, "Mpoints/s")
		})
	}
}
