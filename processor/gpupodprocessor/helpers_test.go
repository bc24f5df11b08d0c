// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/metadatatest"
)

// bench is a started processor with its output and its own telemetry.
type bench struct {
	t    *testing.T
	p    *gpuPod
	sink *consumertest.MetricsSink
	tel  *componenttest.Telemetry
	logs *observer.ObservedLogs
}

func start(t *testing.T, change ...func(*Config)) *bench {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	for _, c := range change {
		c(cfg)
	}
	require.NoError(t, cfg.Validate())
	b := &bench{t: t, sink: new(consumertest.MetricsSink), tel: componenttest.NewTelemetry()}
	core, logs := observer.New(zap.InfoLevel)
	settings := metadatatest.NewSettings(b.tel)
	settings.Logger, b.logs = zap.New(core), logs
	p, err := NewFactory().CreateMetrics(t.Context(), settings, cfg, b.sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		require.NoError(t, p.Shutdown(context.WithoutCancel(t.Context())))
		require.NoError(t, b.tel.Shutdown(context.WithoutCancel(t.Context())))
	})
	b.p = p.(*gpuPod)
	return b
}

// feed passes one batch through and returns what came out.
func (b *bench) feed(md pmetric.Metrics) pmetric.Metrics {
	b.t.Helper()
	b.sink.Reset()
	require.NoError(b.t, b.p.ConsumeMetrics(b.t.Context(), md))
	require.Len(b.t, b.sink.AllMetrics(), 1)
	return b.sink.AllMetrics()[0]
}

// expect feeds in and compares what comes out, order included.
func (b *bench) expect(in, want string) {
	b.t.Helper()
	require.Equal(b.t, format(parse(want)), format(b.feed(parse(in))))
}

// str is the text of an attribute.
var str = points.Str

// point is a data point of any type.
type point[P any] interface {
	Attributes() pcommon.Map
	SetTimestamp(pcommon.Timestamp)
	SetFlags(pmetric.DataPointFlags)
}

// tracked is the number of series that are remembered.
func (b *bench) tracked() int { return b.p.pipeline.Tracker.Series() }

// devices is the number of devices that are remembered.
func (b *bench) devices() (n int) {
	for _, of := range b.p.pipeline.Tracker.Devices() {
		n += of
	}
	return n
}

// backend is what a metric store would answer: the last value of every series,
// until it is ended. A series is a metric's name, the device's identity and the
// point's attributes.
type backend map[string]float64

func (b backend) write(t *testing.T, md pmetric.Metrics) {
	for _, rm := range md.ResourceMetrics().All() {
		identity := ""
		for _, key := range []string{names.HwID, names.K8sNamespaceName, names.K8sPodName, names.K8sContainerName, names.ServiceName} {
			identity += str(rm.Resource().Attributes(), key) + " "
		}
		for _, key := range []string{names.HostName, names.GPUIndex, names.GPUMIGProfile} {
			if v := str(rm.Resource().Attributes(), key); v != "" {
				identity += key + "=" + v + " "
			}
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				markers := 0
				for _, p := range numbers(m).All() {
					series := m.Name() + " " + identity + formatAttrs(p.Attributes())
					if p.Flags().NoRecordedValue() {
						markers++
						require.Contains(t, b, series, "a marker ends a series that lives")
						delete(b, series)
					} else {
						b[series] = p.DoubleValue()
					}
				}
				require.Contains(t, []int{0, numbers(m).Len()}, markers, "markers have a metric of their own")
			}
		}
	}
}

// sum adds up the series of metric, as sum(metric) does.
func (b backend) sum(metric string) (sum float64) {
	for series, v := range b {
		if strings.HasPrefix(series, metric+" ") {
			sum += v
		}
	}
	return sum
}
