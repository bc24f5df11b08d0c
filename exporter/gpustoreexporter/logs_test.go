// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreexporter

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

func TestEventsAreKeptAsTheyAre(t *testing.T) {
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr(names.ServiceName, "llama")
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	r := records.AppendEmpty()
	r.SetEventName("gpu.service.partial")
	r.SetTimestamp(pcommon.NewTimestampFromTime(at))
	r.SetSeverityNumber(plog.SeverityNumberWarn2)
	r.SetTraceID([16]byte{1})
	r.Body().SetStr("llama: 2 of 5 pods\nare missing")
	r.Attributes().PutStr(names.GPUEventID, "id-1")
	r.Attributes().PutStr(names.GPUEventKey, "key-1")
	r.Attributes().PutStr(names.GPUEventState, "raised")
	r.Attributes().PutInt("missing", 2)
	r.Attributes().PutBool("settled", true)
	r.Attributes().PutDouble("share", 0.4)
	r.Attributes().PutDouble("nan", math.NaN())
	r.Attributes().PutEmptySlice("pods").AppendEmpty().SetStr("llama-3")
	r.Attributes().PutEmpty("empty")
	records.AppendEmpty().Body().SetStr("a line of a log")

	s := &fakeStore{}
	e, tel, finish := startLogs(t, s)
	require.NoError(t, e.ConsumeLogs(t.Context(), logs))
	finish()
	assert.Equal(t, []*store.Event{{
		ID: "id-1", Name: "gpu.service.partial", Key: "key-1", State: "raised", Severity: "warn", Message: "llama: 2 of 5 pods are missing",
		Time: at, TraceID: "01000000000000000000000000000000",
		Resource:   map[string]any{names.ServiceName: "llama"},
		Attributes: map[string]any{"missing": int64(2), "settled": true, "share": 0.4, "nan": "NaN", "pods": []any{"llama-3"}, "empty": nil},
	}}, s.events)
	assert.EqualValues(t, 1, counted(t, tel, "otelcol_exporter_gpu_store_skipped_records"))
}

// Rows of usage are kept apart, and are no events; one that cannot be true costs the
// others nothing.
func TestRowsOfUsageAreNoEvents(t *testing.T) {
	logs := plog.NewLogs()
	records := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	want := []usage.Row{
		{Key: usage.Key{State: usage.Free}, Hour: at.Truncate(time.Hour), Revision: 2, Amounts: usage.Amounts{Time: 5, Carbon: -1}},
		{Key: usage.Key{State: usage.Held, Service: "llama"}, Hour: at.Truncate(time.Hour), Open: true},
	}
	want[0].ToRecord(records.AppendEmpty())
	bad := records.AppendEmpty()
	want[0].ToRecord(bad)
	bad.Attributes().PutInt(names.GPUUsageTime, -1)
	records.AppendEmpty().SetEventName(names.EventXID)
	want[1].ToRecord(records.AppendEmpty())

	s := &fakeStore{}
	e, tel, finish := startLogs(t, s)
	require.NoError(t, e.ConsumeLogs(t.Context(), logs))
	finish()
	assert.Equal(t, want, s.rows)
	require.Len(t, s.events, 1)
	assert.Equal(t, names.EventXID, s.events[0].Name)
	assert.EqualValues(t, 1, counted(t, tel, "otelcol_exporter_gpu_store_skipped_records"))
}

// A disk that refuses rows of usage is reported to their sender, which keeps them; events wait
// in the queue.
func TestRefusedRowsOfUsageAreReported(t *testing.T) {
	row := usage.Row{Key: usage.Key{State: usage.Free}, Hour: at.Truncate(time.Hour), Revision: 1, Amounts: usage.Amounts{Time: 5}}
	request := func(f func(plog.LogRecord)) plog.Logs {
		logs := plog.NewLogs()
		f(logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
		return logs
	}
	full := errors.New("no space left on device")
	e, tel, finish := startLogs(t, &fakeStore{fail: full})
	err := e.ConsumeLogs(t.Context(), request(row.ToRecord))
	require.ErrorIs(t, err, full)
	assert.False(t, consumererror.IsPermanent(err))
	require.NoError(t, e.ConsumeLogs(t.Context(), request(func(r plog.LogRecord) { r.SetEventName(names.EventXID) })))
	finish()
	assert.EqualValues(t, 2, counted(t, tel, "otelcol_exporter_send_failed_log_records"))
}

// A store that reads only keeps events all the same: its log is its own.
func TestEventsNeedNoWritableEngine(t *testing.T) {
	_, _, finish := startLogs(t, &fakeStore{readOnly: true})
	finish()
}

// An acknowledgement is the console's: what a sender calls one is an event like
// any other, and takes the attention from nothing.
func TestNoSenderAcknowledges(t *testing.T) {
	r := plog.NewLogRecord()
	r.SetEventName(names.EventXID)
	r.Attributes().PutStr(names.GPUEventState, names.EventAcknowledged)
	assert.Empty(t, newEvent(r, pcommon.NewResource(), at).State)
}

func TestHostileEventsAreBoundedAndSafe(t *testing.T) {
	r := plog.NewLogRecord()
	r.SetEventName(strings.Repeat("n", 1000) + "\x1b[31m")
	r.SetTimestamp(math.MaxUint64)
	r.Body().SetStr("\u202eevil\x00" + strings.Repeat("x", 1_000_000))
	for i := range 10_000 {
		r.Attributes().PutStr(strings.Repeat("k", 300)+string(rune('a'+i%26))+strings.Repeat("z", i%7)+string(rune(i)), "\xff"+strings.Repeat("v", 5000))
	}
	deep := r.Attributes().PutEmptyMap("deep")
	for range 500 {
		deep = deep.PutEmptyMap("m")
	}
	e := newEvent(r, pcommon.NewResource(), at)
	text, err := json.Marshal(e)
	require.NoError(t, err)
	assert.Less(t, len(text), 64<<10)
	assert.True(t, e.Truncated)
	assert.NotContains(t, e.Message, "\u202e")
	assert.NotContains(t, e.Name, "\x1b")
	assert.Nil(t, newEvent(plog.NewLogRecord(), pcommon.NewResource(), at))
}
