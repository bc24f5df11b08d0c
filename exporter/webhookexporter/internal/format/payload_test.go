// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

var now = time.Date(2026, 3, 4, 6, 0, 0, 0, time.UTC)

var storyTime = time.Date(2026, 3, 4, 5, 6, 7, 890_000_000, time.UTC)

// addStory adds the event that most tests write.
func addStory(logs plog.Logs, id, state string, severity plog.SeverityNumber) plog.LogRecord {
	rl := logs.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr(names.K8sClusterName, "prod")
	rl.Resource().Attributes().PutStr(names.ServiceName, "vllm")
	record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName("gpu.service.partial")
	record.SetSeverityNumber(severity)
	record.SetTimestamp(pcommon.NewTimestampFromTime(storyTime))
	record.Body().SetStr("1 of 2 pods of vllm report nothing.")
	record.Attributes().PutStr(names.GPUEventID, id)
	record.Attributes().PutStr(names.GPUEventKey, "prod/vllm/partial")
	record.Attributes().PutStr(names.GPUEventState, state)
	record.Attributes().PutDouble("ratio", 0.5)
	return record
}

// eventOf copies the first record of the logs.
func eventOf(logs plog.Logs) *event.Event {
	rl := logs.ResourceLogs().At(0)
	return &event.Event{Event: eventrecord.Read(rl.ScopeLogs().At(0).LogRecords().At(0), rl.Resource(), now)}
}

func encode(t *testing.T, format string, e *event.Event) string {
	body, err := testEncoders[format].Encode([]*event.Event{e})
	require.NoError(t, err)
	return string(body)
}

func TestStandardPayload(t *testing.T) {
	logs := plog.NewLogs()
	record := addStory(logs, "0195-x", names.EventRaised, plog.SeverityNumberWarn)
	attrs := record.Attributes()
	attrs.PutInt("missing.count", 9007199254740993)
	attrs.PutBool("settled", true)
	missing := attrs.PutEmptySlice("missing.pods")
	missing.AppendEmpty().SetStr("vllm-0\u202e")
	attrs.PutEmptyMap("nested").PutStr("a<b", "c&d")
	attrs.PutDouble("nan", math.NaN())
	attrs.PutEmptyBytes("raw").FromRaw([]byte{1, 2, 3})
	attrs.PutEmpty("nothing")
	record.SetTraceID([16]byte{0xab})

	assert.Equal(t, `{"type":"gpu.service.partial","timestamp":"2026-03-04T05:06:07.89Z","data":{`+
		`"id":"0195-x","key":"prod/vllm/partial","state":"raised","severity":"warn","message":"1 of 2 pods of vllm report nothing.",`+
		`"attributes":{"missing.count":9007199254740993,"missing.pods":["vllm-0"],"nan":"NaN","nested":{"a<b":"c&d"},"nothing":null,"ratio":0.5,"raw":"AQID","settled":true},`+
		`"resource":{"k8s.cluster.name":"prod","service.name":"vllm"},`+
		`"trace_id":"ab000000000000000000000000000000"}}`,
		encode(t, "standard", eventOf(logs)))
}

func TestConvoxPayload(t *testing.T) {
	logs := plog.NewLogs()
	record := addStory(logs, "0195-x", names.EventRaised, plog.SeverityNumberWarn)
	attrs := record.Attributes()
	attrs.PutInt("missing.count", 1)
	attrs.PutBool("settled", true)
	attrs.PutEmptySlice("missing.pods").AppendEmpty().SetStr("vllm-0\u202e")
	attrs.PutEmpty("nothing")
	attrs.PutStr("state", "an attribute must not pass for the state")
	attrs.PutStr("service.name", "the event's own")

	assert.Equal(t, `{"action":"gpu:service:partial","data":{`+
		`"actor":"system","id":"0195-x","k8s.cluster.name":"prod","key":"prod/vllm/partial","message":"1 of 2 pods of vllm report nothing.",`+
		`"missing.count":"1","missing.pods":"[\"vllm-0\"]","nothing":"","rack":"prod","ratio":"0.5","service.name":"the event's own","settled":"true","severity":"warn","state":"raised"},`+
		`"status":"error","timestamp":"2026-03-04T05:06:07.89Z"}`,
		encode(t, "convox", eventOf(logs)))
}

// A body of Convox's own tests survives our types unchanged.
func TestConvoxShape(t *testing.T) {
	const body = `{"action":"app:budget:cap","data":{"app":"demo","cap":"100","rack":"smoke-1021","spend":"12.34"},"status":"success","timestamp":"2026-04-24T12:00:00Z"}`
	var payload convoxBody
	require.NoError(t, strict([]byte(body), &payload))
	again, err := event.JSON(payload)
	require.NoError(t, err)
	assert.Equal(t, body, string(again))
}

func TestConvoxStatus(t *testing.T) {
	tests := []struct {
		state    string
		severity plog.SeverityNumber
		want     string
	}{
		{names.EventRaised, plog.SeverityNumberError, "error"},
		{names.EventRaised, plog.SeverityNumberWarn, "error"},
		{names.EventRaised, plog.SeverityNumberInfo, "success"},
		{names.EventCleared, plog.SeverityNumberInfo, "success"},
		{names.EventCleared, plog.SeverityNumberError, "success"},
		{"", plog.SeverityNumberError, "error"},
		{"", plog.SeverityNumberInfo, "success"},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.want, convoxStatus(&event.Event{Event: eventrecord.Event{State: tt.state, Severity: tt.severity}}), "%+v", tt)
	}
}

func TestBareEvent(t *testing.T) {
	logs := plog.NewLogs()
	record := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName("GPU.Odd Name!")
	record.Attributes().PutStr(names.GPUEventID, "new-id")
	e := eventOf(logs)
	assert.Equal(t, `{"type":"gpu.odd_name_","timestamp":"2026-03-04T06:00:00Z","data":{"id":"new-id","key":"","state":"","severity":"info","message":"","attributes":{},"resource":{}}}`,
		encode(t, "standard", e))
	assert.Equal(t, `{"action":"gpu:odd_name_","data":{"actor":"system","id":"new-id","key":"","message":"","rack":"unknown","severity":"info","state":""},"status":"success","timestamp":"2026-03-04T06:00:00Z"}`,
		encode(t, "convox", e))
}

func TestHugeEventIsBounded(t *testing.T) {
	logs := plog.NewLogs()
	record := addStory(logs, strings.Repeat("i", 1<<20), names.EventRaised, plog.SeverityNumberWarn)
	record.Body().SetStr(strings.Repeat("\"", 1<<20))
	for i := range 1000 {
		record.Attributes().PutStr(strings.Repeat("k", i), strings.Repeat("\\", 1<<12))
	}
	list := record.Attributes().PutEmptySlice("list")
	for range 10_000 {
		list.AppendEmpty().SetEmptyMap()
	}
	e := eventOf(logs)
	assert.True(t, e.Truncated)
	assert.Len(t, e.Resource, 2, "the subject is kept")
	for _, f := range []string{"standard", "convox"} {
		body := encode(t, f, e)
		assert.Less(t, len(body), 64<<10)
		assert.Contains(t, body, `"truncated":`)
	}
}

func FuzzPayload(f *testing.F) {
	f.Add("gpu.xid", "id", "key", "raised", "body", "attr", "value", 1.5, uint64(1), uint8(1))
	f.Add("", "", "", "", "", "", "", math.NaN(), uint64(0), uint8(0))
	f.Add("a\nb", "\u202e", "\x1b[0m", "cleared", "\xff", "\u200b", "\"\\<>&", math.Inf(1), uint64(math.MaxUint64), uint8(200))
	f.Fuzz(func(t *testing.T, name, id, key, state, body, attr, value string, number float64, ts uint64, repeat uint8) {
		logs := plog.NewLogs()
		rl := logs.ResourceLogs().AppendEmpty()
		rl.Resource().Attributes().PutStr(attr, value)
		record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		record.SetEventName(name)
		record.SetTimestamp(pcommon.Timestamp(ts))
		record.SetSeverityText(value)
		record.Body().SetStr(body)
		record.Attributes().PutStr(names.GPUEventID, id)
		record.Attributes().PutStr(names.GPUEventKey, key)
		record.Attributes().PutStr(names.GPUEventState, state)
		nested := record.Attributes().PutEmptyMap("nested" + attr)
		for range repeat {
			m := nested.PutEmptyMap(attr)
			m.PutDouble(value, number)
			m.PutEmptySlice(body).AppendEmpty().SetStr(value)
			nested = m.PutEmptyMap("n")
		}
		e := eventOf(logs)
		for format, enc := range testEncoders {
			out, err := enc.Encode([]*event.Event{e})
			if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			if !json.Valid(out) || !utf8.Valid(out) {
				t.Fatalf("%s: not JSON: %q", format, out)
			}
			if len(out) > 128<<10 {
				t.Fatalf("%s: %d bytes", format, len(out))
			}
			for _, r := range string(out) {
				if safetext.IsHidden(r) {
					t.Fatalf("%s: %U in %q", format, r, out)
				}
			}
		}
	})
}
