// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package eventrecord

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

var now = time.Date(2026, 3, 4, 6, 0, 0, 0, time.UTC)

// addEvent adds an event without attributes.
func addEvent(logs plog.Logs) plog.LogRecord {
	record := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName("gpu.service.partial")
	return record
}

// eventOf reads the first record of the logs.
func eventOf(logs plog.Logs) Event {
	rl := logs.ResourceLogs().At(0)
	return Read(rl.ScopeLogs().At(0).LogRecords().At(0), rl.Resource(), now)
}

func TestAnEventIsReadWhole(t *testing.T) {
	logs := plog.NewLogs()
	record := addEvent(logs)
	logs.ResourceLogs().At(0).Resource().Attributes().PutStr(names.ServiceName, "vllm")
	record.SetTimestamp(pcommon.NewTimestampFromTime(now.Add(-time.Hour)))
	record.SetObservedTimestamp(pcommon.NewTimestampFromTime(now.Add(-time.Minute)))
	record.SetSeverityNumber(plog.SeverityNumberWarn2)
	record.SetTraceID([16]byte{0xab})
	record.Body().SetStr("1 of 2 pods is missing")
	attrs := record.Attributes()
	attrs.PutStr(names.GPUEventID, "id")
	attrs.PutStr(names.GPUEventKey, "key")
	attrs.PutStr(names.GPUEventState, names.EventRaised)
	attrs.PutInt("count", 9007199254740993)
	attrs.PutDouble("nan", math.NaN())
	attrs.PutEmptyBytes("raw").FromRaw([]byte{1, 2, 3})
	attrs.PutEmptySlice("list").AppendEmpty().SetBool(true)
	attrs.PutEmpty("empty")
	want := Event{
		ID: "id", Name: "gpu.service.partial", Key: "key", State: names.EventRaised, Message: "1 of 2 pods is missing",
		Severity: plog.SeverityNumberWarn2, Time: now.Add(-time.Hour), TraceID: "ab000000000000000000000000000000",
		Attributes: map[string]any{"count": int64(9007199254740993), "nan": "NaN", "raw": "AQID", "list": []any{true}, "empty": nil},
		Resource:   map[string]any{names.ServiceName: "vllm"},
	}
	assert.Equal(t, want, eventOf(logs))
	assert.Equal(t, []string{"id", "gpu.service.partial", "key", names.EventRaised}, []string{ID(record), Name(record), Key(record), State(record)})

	record.SetTimestamp(0)
	assert.Equal(t, now.Add(-time.Minute), eventOf(logs).Time, "when it was observed")
	record.SetObservedTimestamp(0)
	assert.Equal(t, now, eventOf(logs).Time)
	attrs.Remove(names.GPUEventID)
	assert.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-7`, eventOf(logs).ID, "a UUIDv7")
	assert.NotEqual(t, eventOf(logs).ID, eventOf(logs).ID)
}

// Whatever time a sender states, JSON can write it.
func TestEveryTimestampIsATimeOfJSON(t *testing.T) {
	logs := plog.NewLogs()
	record := addEvent(logs)
	for _, ts := range []pcommon.Timestamp{1, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64} {
		record.SetTimestamp(ts)
		_, err := eventOf(logs).Time.MarshalJSON()
		assert.NoError(t, err, ts)
	}
}

func TestSeverity(t *testing.T) {
	tests := []struct {
		number plog.SeverityNumber
		text   string
		want   string
	}{
		{plog.SeverityNumberTrace, "", "trace"}, {plog.SeverityNumberDebug4, "", "debug"},
		{plog.SeverityNumberInfo, "", "info"}, {plog.SeverityNumberInfo4, "", "info"},
		{plog.SeverityNumberWarn, "", "warn"}, {plog.SeverityNumberError2, "", "error"}, {plog.SeverityNumberFatal4, "", "fatal"},
		{plog.SeverityNumberUnspecified, "ERROR", "error"}, {plog.SeverityNumberUnspecified, "Warn", "warn"},
		{plog.SeverityNumberUnspecified, "WARNING", "warn"},
		{plog.SeverityNumberUnspecified, "", "info"}, {plog.SeverityNumberUnspecified, "loud", "info"},
		{plog.SeverityNumber(99), "", "info"}, {plog.SeverityNumber(-1), "", "info"},
		{plog.SeverityNumberError, "info", "error"},
	}
	for _, tt := range tests {
		record := plog.NewLogRecord()
		record.SetSeverityNumber(tt.number)
		record.SetSeverityText(tt.text)
		assert.Equal(t, tt.want, SeverityName(Severity(record)), "%+v", tt)
	}
}

func TestTextsFromOutsideAreMadeSafe(t *testing.T) {
	const evil = "a\n\x1b[2J\u202e\u200bb"
	const safe = "a [2Jb"
	logs := plog.NewLogs()
	record := addEvent(logs)
	record.Attributes().PutStr(names.GPUEventID, evil)
	record.Attributes().PutStr(names.GPUEventState, evil)
	record.SetEventName(evil)
	record.Body().SetStr(evil)
	record.Attributes().PutStr(names.GPUEventKey, evil)
	record.Attributes().PutStr(evil, evil)
	logs.ResourceLogs().At(0).Resource().Attributes().PutStr(evil, evil)
	e := eventOf(logs)
	for _, got := range []string{e.ID, e.State, e.Name, e.Message, e.Key} {
		assert.Equal(t, safe, got)
	}
	assert.Equal(t, safe, e.Attributes[safe])
	assert.Equal(t, safe, e.Resource[safe])
}

func TestLongBytesAreCut(t *testing.T) {
	logs := plog.NewLogs()
	addEvent(logs).Attributes().PutEmptyBytes("raw").FromRaw(make([]byte, MaxValue+1))
	e := eventOf(logs)
	assert.Equal(t, base64.StdEncoding.EncodeToString(make([]byte, MaxValue)), e.Attributes["raw"])
	assert.True(t, e.Truncated)
}

// Values without any text take room as well: in the queue, and in the body.
func TestManyEmptyValuesAreBounded(t *testing.T) {
	logs := plog.NewLogs()
	attrs := addEvent(logs).Attributes()
	for i := range MaxEntries {
		list := attrs.PutEmptySlice(strconv.Itoa(i))
		for range MaxEntries {
			list.AppendEmpty().SetEmptyMap()
		}
	}
	e := eventOf(logs)
	assert.True(t, e.Truncated)
	values := 0
	for _, v := range e.Attributes {
		list, _ := v.([]any)
		values += 1 + len(list)
	}
	assert.LessOrEqual(t, values, MaxEventBytes/ValueBytes)
}

func TestDeepEventIsBounded(t *testing.T) {
	logs := plog.NewLogs()
	m := addEvent(logs).Attributes().PutEmptyMap("deep")
	for range 1000 {
		m = m.PutEmptyMap("deep")
	}
	e := eventOf(logs)
	assert.True(t, e.Truncated)
	assert.Equal(t, map[string]any{"deep": map[string]any{"deep": map[string]any{}}}, e.Attributes["deep"])
}

// Fifty pods with the longest names that Kubernetes allows fit.
func TestFiftyPodNamesFit(t *testing.T) {
	logs := plog.NewLogs()
	pods := addEvent(logs).Attributes().PutEmptySlice("missing")
	for range 50 {
		pods.AppendEmpty().SetStr(strings.Repeat("p", 253))
	}
	e := eventOf(logs)
	assert.False(t, e.Truncated)
	assert.Len(t, e.Attributes["missing"], 50)
}
