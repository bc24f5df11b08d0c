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
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/metadata"
)

// pipelines are a metrics, a logs and a traces pipeline of one component ID.
type pipelines struct {
	metrics processor.Metrics
	logs    processor.Logs
	traces  processor.Traces
}

func startPipelines(t *testing.T, cfg *Config) pipelines {
	t.Helper()
	set := processortest.NewNopSettings(metadata.Type)
	var p pipelines
	var err error
	p.metrics, err = NewFactory().CreateMetrics(t.Context(), set, cfg, consumertest.NewNop())
	require.NoError(t, err)
	p.logs, err = NewFactory().CreateLogs(t.Context(), set, cfg, consumertest.NewNop())
	require.NoError(t, err)
	p.traces, err = NewFactory().CreateTraces(t.Context(), set, cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, p.logs.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, p.metrics.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, p.traces.Start(t.Context(), componenttest.NewNopHost()))
	return p
}

func (p *pipelines) shutdown(t *testing.T) {
	for _, c := range []interface{ Shutdown(context.Context) error }{p.metrics, p.traces, p.logs} {
		require.NoError(t, c.Shutdown(context.WithoutCancel(t.Context())))
	}
}

// Logs and spans get the identity beside the device's id, from what the metrics
// of the same component ID reported.
func TestLogsAndTraces(t *testing.T) {
	p := startPipelines(t, createDefaultConfig().(*Config))
	defer p.shutdown(t)
	require.NoError(t, p.metrics.ConsumeMetrics(t.Context(), parse(snapshot(10,
		"ml/a-0/main 1 hw.id=GPU-a", "ml/b-0/main 1 hw.id=n1/"+mig, "- 0 hw.id=GPU-f", "ml/a-0/main 1 hw.id=GPU-m/3",
		"ml/a-0/main 0.5 gpu.sharing=mps hw.id=GPU-s::0", "ml/b-0/main 0.5 gpu.sharing=mps hw.id=GPU-s::1",
		"ml/a-0/main 1 hw.id=GPU-c", "ml/b-0/main 1 hw.id=GPU-c"))))

	for _, tt := range []struct{ name, attrs, owner string }{
		{"hw.id", "hw.id=GPU-a", aHeld},
		{"hw.id of a GPU", "hw.id=GPU-a hw.type=gpu", aHeld},
		{"UUID", "UUID=GPU-a", aHeld},
		{"uuid", "uuid=GPU-a", aHeld},
		{"gpu_uuid", "gpu_uuid=GPU-a", aHeld},
		{"UUID and instance", "UUID=GPU-m GPU_I_ID=3", aHeld},
		{"a MIG instance by its own id", "uuid=" + mig, bHeld},
		{"hw.id before others", "hw.id=GPU-a uuid=GPU-f", aHeld},
		{"the GPU of an instance", "hw.id=GPU-m", ""},
		{"free", "hw.id=GPU-f", ""},
		{"shared", "hw.id=GPU-s", ""},
		{"a part of a shared one", "hw.id=GPU-s::1", bHeld},
		{"a part that nobody holds", "hw.id=GPU-s::7", ""},
		{"contested", "hw.id=GPU-c", ""},
		{"nobody's", "hw.id=GPU-x", ""},
		{"no device", "uuid=0b7e pod=x", ""},
		{"another kind of hardware", "hw.id=GPU-a hw.type=fan", ""},
		{"an identity that is there stays", "hw.id=GPU-a k8s.pod.name=there-0", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := formatAttrs(attrsOf(tt.attrs + " " + tt.owner))
			ld := plog.NewLogs()
			rl := ld.ResourceLogs().AppendEmpty()
			putAll(rl.Resource().Attributes(), fields(tt.attrs))
			other := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
			putAll(other.Attributes(), fields("k=v"))
			record := rl.ScopeLogs().At(0).LogRecords().AppendEmpty()
			putAll(record.Attributes(), fields(tt.attrs))
			other.SetTimestamp(20e9)
			record.SetObservedTimestamp(20e9)
			require.NoError(t, p.logs.ConsumeLogs(t.Context(), ld))
			require.Equal(t, want, formatAttrs(rl.Resource().Attributes()))
			require.Equal(t, want, formatAttrs(record.Attributes()))
			require.Equal(t, " k=v", formatAttrs(other.Attributes()))

			td := ptrace.NewTraces()
			rs := td.ResourceSpans().AppendEmpty()
			putAll(rs.Resource().Attributes(), fields(tt.attrs))
			span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
			putAll(span.Attributes(), fields(tt.attrs))
			span.SetStartTimestamp(20e9)
			span.SetEndTimestamp(30e9)
			require.NoError(t, p.traces.ConsumeTraces(t.Context(), td))
			require.Equal(t, want, formatAttrs(rs.Resource().Attributes()))
			require.Equal(t, want, formatAttrs(span.Attributes()))
		})
	}
}

// What is known is shared by one component ID, by no other, and let go with its
// last instance, also if some never started.
func TestSharedKnowledge(t *testing.T) {
	one, two := createDefaultConfig().(*Config), createDefaultConfig().(*Config)
	a, b := startPipelines(t, one), startPipelines(t, two)
	again := startPipelines(t, one)
	require.Same(t, a.metrics.(*gpuPod).pipeline.Join.Memory, a.logs.(*logsProcessor).memory)
	require.Same(t, a.metrics.(*gpuPod).pipeline.Join.Memory, again.traces.(*tracesProcessor).memory)
	require.NotSame(t, a.metrics.(*gpuPod).pipeline.Join.Memory, b.metrics.(*gpuPod).pipeline.Join.Memory)
	require.Len(t, shared.users, 2)

	never, err := NewFactory().CreateLogs(t.Context(), processortest.NewNopSettings(metadata.Type), one, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, never.Shutdown(t.Context()))

	a.shutdown(t)
	require.Len(t, shared.users, 2)
	b.shutdown(t)
	again.shutdown(t)
	again.shutdown(t) // twice is once
	require.Empty(t, shared.users)
}

func fields(pairs string) []string { return strings.Fields(pairs) }

func attrsOf(pairs string) pcommon.Map {
	m := pcommon.NewMap()
	putAll(m, fields(pairs))
	return m
}

func TestNamedDeviceIgnoresOtherTypes(t *testing.T) {
	m := pcommon.NewMap()
	m.PutInt(names.HwID, 3)
	m.PutBool("UUID", true)
	m.PutStr("uuid", "")
	require.Empty(t, identity.NamedDevice(m))
}
