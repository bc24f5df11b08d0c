// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package appguardprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/reserved"
	"github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor/internal/metadata"
)

// What gpu_pod states about the devices of a pod no application can: on spans and log
// records, their scopes and resources it gets app. in front of its name.
func TestRecordsDoNotStateTheDevicesOfTheirPod(t *testing.T) {
	forge := func(attributes pcommon.Map) {
		attributes.PutEmptySlice(names.GPUDeviceIDs).AppendEmpty().SetStr("GPU-forged")
		attributes.PutInt(names.GPUDeviceCount, 8)
		attributes.PutStr(names.HwModel, "H100")
		attributes.PutStr("gen_ai.request.model", "llama")
	}
	ofRecord := map[string]any{"app.gpu.device.ids": []any{"GPU-forged"}, "app.gpu.device_count": int64(8), "hw.model": "H100", "gen_ai.request.model": "llama"}
	ofResource := map[string]any{"app.gpu.device.ids": []any{"GPU-forged"}, "app.gpu.device_count": int64(8), "app.hw.model": "H100", "gen_ai.request.model": "llama"}
	settings := processortest.NewNopSettings(metadata.Type)

	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	scopes := []pcommon.Map{rl.ScopeLogs().At(0).Scope().Attributes(), rs.ScopeSpans().At(0).Scope().Attributes()}
	for _, attributes := range append(scopes, rl.Resource().Attributes(), record.Attributes(), rs.Resource().Attributes(), span.Attributes()) {
		forge(attributes)
	}
	logs, err := createLogs(t.Context(), settings, createDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, logs.ConsumeLogs(t.Context(), ld))
	require.NoError(t, logs.Shutdown(t.Context()))
	traces, err := createTraces(t.Context(), settings, createDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, traces.ConsumeTraces(t.Context(), td))
	require.NoError(t, traces.Shutdown(t.Context()))

	for _, attributes := range append(scopes, record.Attributes(), span.Attributes()) {
		assert.Equal(t, ofRecord, attributes.AsRaw())
	}
	for _, attributes := range []pcommon.Map{rl.Resource().Attributes(), rs.Resource().Attributes()} {
		assert.Equal(t, ofResource, attributes.AsRaw())
	}
}

// FuzzConsumeLogs feeds log records of any shape. None that passes would be taken
// for an event of GPUs.
func FuzzConsumeLogs(f *testing.F) {
	for _, name := range []string{"gpu.xid", "\u200bGPU.xid", "session.start"} {
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		rl.Resource().Attributes().PutStr("k8s.pod.name", "web-1")
		record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		record.SetEventName(name)
		record.Attributes().PutStr("event.name", name)
		seed, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
		require.NoError(f, err)
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		ld, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(in)
		if err != nil {
			return
		}
		sink := &consumertest.LogsSink{}
		p, err := createLogs(t.Context(), processortest.NewNopSettings(metadata.Type), createDefaultConfig(), sink)
		require.NoError(t, err)
		require.NoError(t, p.ConsumeLogs(t.Context(), ld))
		require.NoError(t, p.Shutdown(t.Context()))
		for _, ld := range sink.AllLogs() {
			for _, rl := range ld.ResourceLogs().All() {
				for _, sl := range rl.ScopeLogs().All() {
					for _, record := range sl.LogRecords().All() {
						assert.False(t, reserved.Event(record), "%q", record.EventName())
						assert.NotRegexp(t, `(?i)^gpu[._]`, record.EventName())
					}
				}
			}
		}
	})
}
