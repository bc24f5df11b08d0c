// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package appguardprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/reserved"
	"github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor/internal/metadata"
)

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
