// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/otlpseeds"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/metadata"
)

// FuzzOTLP feeds any request of any signal, as a client may write it on the wire:
// nothing panics. Metrics go in twice, since what the first ones announce decides
// how the next ones are read.
func FuzzOTLP(f *testing.F) {
	now := time.Now()
	for signal, seeds := range [][][]byte{otlpseeds.Metrics(now), otlpseeds.Logs(now), otlpseeds.Traces(now)} {
		for _, data := range seeds {
			f.Add(uint8(signal), data)
		}
	}
	f.Fuzz(func(t *testing.T, signal uint8, data []byte) {
		factory, cfg, set := NewFactory(), createDefaultConfig(), processortest.NewNopSettings(metadata.Type)
		metrics, err := factory.CreateMetrics(t.Context(), set, cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.NoError(t, metrics.Start(t.Context(), componenttest.NewNopHost()))
		defer func() { require.NoError(t, metrics.Shutdown(t.Context())) }()
		logs, err := factory.CreateLogs(t.Context(), set, cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.NoError(t, logs.Start(t.Context(), componenttest.NewNopHost()))
		defer func() { require.NoError(t, logs.Shutdown(t.Context())) }()
		traces, err := factory.CreateTraces(t.Context(), set, cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.NoError(t, traces.Start(t.Context(), componenttest.NewNopHost()))
		defer func() { require.NoError(t, traces.Shutdown(t.Context())) }()

		switch signal % 3 {
		case 0:
			for range 2 {
				if md, err := new(pmetric.ProtoUnmarshaler).UnmarshalMetrics(data); err == nil {
					require.NoError(t, metrics.ConsumeMetrics(t.Context(), md))
				}
			}
		case 1:
			if ld, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(data); err == nil {
				require.NoError(t, logs.ConsumeLogs(t.Context(), ld))
			}
		case 2:
			if td, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(data); err == nil {
				require.NoError(t, traces.ConsumeTraces(t.Context(), td))
			}
		}
	})
}
