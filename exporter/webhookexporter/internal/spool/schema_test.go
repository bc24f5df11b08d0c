// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// The body after a restart is the body before it, to the byte.
func TestAnEventSurvivesUnchanged(t *testing.T) {
	record := plog.NewLogRecord()
	record.SetEventName("gpu.xid")
	record.Body().SetStr("GPU 3 has fallen off the bus. <&>")
	record.SetSeverityNumber(plog.SeverityNumberError2)
	record.SetTraceID([16]byte{1})
	attrs := record.Attributes()
	attrs.PutStr(names.GPUEventKey, "key")
	attrs.PutInt("int", 1<<62+1)
	attrs.PutDouble("whole", 123456789)
	attrs.PutDouble("great", 1e300)
	attrs.PutDouble("fraction", 0.1)
	attrs.PutDouble("minus", -2)
	attrs.PutBool("bool", true)
	attrs.PutEmpty("nothing")
	attrs.PutEmptyBytes("bytes").FromRaw([]byte{0, 255})
	list := attrs.PutEmptySlice("list")
	list.AppendEmpty().SetDouble(1)
	list.AppendEmpty().SetInt(1)
	attrs.PutEmptyMap("map").PutDouble("d", 7)
	ev := &event.Event{Event: eventrecord.Read(record, plog.NewResourceLogs().Resource(), time.Date(2026, 3, 4, 5, 6, 7, 890_000_000, time.UTC))}
	ev.Trigger = audit.TriggerReplay
	text, err := encodeEvent(&delivery.Item{Event: ev, Number: 7})
	require.NoError(t, err)
	it, err := decodeEvent(text)
	require.NoError(t, err)
	assert.Equal(t, uint64(7), it.Number)
	assert.Equal(t, ev, it.Event)
}

func FuzzDecodeStored(f *testing.F) {
	text, err := encodeEvent(&delivery.Item{Event: &event.Event{Event: eventrecord.Event{ID: "1", Name: "n", Attributes: map[string]any{"f": 1.5, "l": []any{int64(1), nil}}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"number":1,"receiver":"ops","event":0,"event_id":"1","attempts":3,"attempting":{"record":"x"}}`))
	f.Add([]byte(`{"id":"1","name":"n","attributes":{"x":1e999}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if it, err := decodeEvent(text); err == nil {
			if _, err := encodeEvent(it); err != nil {
				t.Errorf("what was read cannot be written: %v", err)
			}
		}
		_, _ = decodeRow(text)
	})
}
