// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadatatest"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/signing"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func TestSlowReceiverDelaysNoOther(t *testing.T) {
	release := make(chan struct{})
	slow := newHook(t, func(http.ResponseWriter, *http.Request) { <-release })
	fast := newHook(t, nil)
	h := startHarness(t, map[string]endpoint.Config{"a-slow": to(slow.URL), "b-fast": to(fast.URL)})
	const events = 50
	for range events {
		h.send(partial(eventrecord.NewID(), names.EventRaised))
	}
	for range events {
		assert.Equal(t, "b-fast", h.record().Receiver)
	}
	close(release)
	for range events {
		rec := h.record()
		assert.Equal(t, "a-slow", rec.Receiver)
		assert.Equal(t, audit.Succeeded, rec.Outcome)
	}
}

func TestQueueFull(t *testing.T) {
	entered, release := make(chan struct{}, 10), make(chan struct{})
	server := newHook(t, func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-release })
	cfg := to(server.URL)
	cfg.QueueSize, cfg.Workers = 2, 1
	h := startHarness(t, only(cfg))
	h.send(partial("first", names.EventRaised))
	<-entered // on its way, so no longer in the queue

	logs := plog.NewLogs()
	for i := range 5 {
		addPartial(logs, fmt.Sprintf("next-%d", i), names.EventRaised, plog.SeverityNumberWarn)
	}
	h.send(logs)
	for i := range 3 {
		rec := h.record()
		assert.Equal(t, audit.Dropped, rec.Outcome)
		assert.Equal(t, audit.ErrorQueueFull, rec.ErrorType)
		assert.Equal(t, fmt.Sprintf("next-%d", i+2), rec.Events[0].ID)
		assert.Zero(t, rec.Attempt)
	}
	metadatatest.AssertEqualExporterWebhookQueueLength(t, h.telemetry,
		[]metricdata.DataPoint[int64]{{Value: 2, Attributes: attribute.NewSet(attribute.String("receiver", "ops"))}},
		metricdatatest.IgnoreTimestamp())

	close(release)
	for _, id := range []string{"first", "next-0", "next-1"} {
		rec := h.record()
		assert.Equal(t, id, rec.Events[0].ID)
		assert.Equal(t, audit.Succeeded, rec.Outcome)
	}
	assertDeliveries(t, h.telemetry, map[[3]string]int64{
		{"ops", "succeeded", ""}:         3,
		{"ops", "dropped", "queue_full"}: 3,
	})
}

func TestGoneDisablesTheReceiver(t *testing.T) {
	gone, fine := newHook(t, answerWith(http.StatusGone)), newHook(t, nil)
	h := startHarness(t, map[string]endpoint.Config{"gone": to(gone.URL), "fine": to(fine.URL)})
	byReceiver := func() map[string]*audit.Record {
		a, b := h.one(), h.record()
		return map[string]*audit.Record{a.Receiver: a, b.Receiver: b}
	}
	first := byReceiver()
	assert.Equal(t, audit.Failed, first["gone"].Outcome)
	assert.Equal(t, audit.ErrorGone, first["gone"].ErrorType)
	assert.Equal(t, http.StatusGone, first["gone"].Status)

	second := byReceiver()
	assert.Equal(t, audit.Dropped, second["gone"].Outcome)
	assert.Equal(t, audit.ErrorGone, second["gone"].ErrorType)
	assert.Zero(t, second["gone"].Status)
	assert.Equal(t, audit.Succeeded, second["fine"].Outcome)
	assert.Len(t, gone.received(), 1)
	assert.Len(t, fine.received(), 2)
	metadatatest.AssertEqualExporterWebhookReceiverDisabled(t, h.telemetry, []metricdata.DataPoint[int64]{
		{Value: 0, Attributes: attribute.NewSet(attribute.String("receiver", "fine"))},
		{Value: 1, Attributes: attribute.NewSet(attribute.String("receiver", "gone"))},
	}, metricdatatest.IgnoreTimestamp())
}

// What waits in the queue when the answer is 410 is not sent either.
func TestGoneEmptiesTheQueue(t *testing.T) {
	entered, release := make(chan struct{}, 1), make(chan struct{})
	server := newHook(t, func(w http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-release
		w.WriteHeader(http.StatusGone)
	})
	h := startHarness(t, only(to(server.URL)))
	for range 3 {
		h.send(partial(eventrecord.NewID(), names.EventRaised)) // of one key, so one after the other
	}
	<-entered
	close(release)
	assert.Equal(t, audit.Failed, h.record().Outcome)
	for range 2 {
		rec := h.record()
		assert.Equal(t, audit.Dropped, rec.Outcome)
		assert.Equal(t, audit.ErrorGone, rec.ErrorType)
	}
	assert.Len(t, server.received(), 1)
}

func TestEventsOfOneKeyKeepTheirOrder(t *testing.T) {
	server := newHook(t, nil)
	h := startHarness(t, only(to(server.URL)))
	const keys, turns = 8, 20
	for turn := range turns {
		for key := range keys {
			logs := plog.NewLogs()
			addPartial(logs, fmt.Sprintf("%d-%02d", key, turn), names.EventRaised, plog.SeverityNumberWarn).
				Attributes().PutStr(names.GPUEventKey, fmt.Sprint(key))
			h.send(logs)
		}
	}
	for range keys * turns {
		h.record()
	}
	last := map[byte]string{}
	for _, r := range server.received() {
		id := r.header.Get(signing.HeaderID)
		assert.Less(t, last[id[0]], id)
		last[id[0]] = id
	}
	assert.Len(t, last, keys)
}

func TestEventsWithoutKeyDoNotWaitForEachOther(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	server := newHook(t, func(http.ResponseWriter, *http.Request) {
		select {
		case entered <- struct{}{}:
			<-release
		case <-release:
		}
	})
	h := startHarness(t, only(to(server.URL)))
	const events = 100 // so many do not all get the same worker
	for range events {
		logs := plog.NewLogs()
		addPartial(logs, eventrecord.NewID(), names.EventRaised, plog.SeverityNumberWarn).Attributes().Remove(names.GPUEventKey)
		h.send(logs)
	}
	for range 2 {
		select {
		case <-entered:
		case <-time.After(patience):
			t.Fatal("one waits for the other")
		}
	}
	close(release)
	for range events {
		h.record()
	}
}

func TestRecordsThatAreNoEventsAreSkipped(t *testing.T) {
	server := newHook(t, nil)
	h := startHarness(t, only(to(server.URL)))
	logs := plog.NewLogs()
	for _, name := range []string{"", "\x00\u200b", names.UsageHour, names.UsageOpen, "gpu.xid"} {
		addPartial(logs, "id", names.EventRaised, plog.SeverityNumberWarn).SetEventName(name)
	}
	h.send(logs)
	h.send(logs)
	assert.Equal(t, "gpu.xid", h.record().Events[0].Name)
	assertSkipped(t, h.telemetry, map[string]int64{"no_event_name": 4, "usage": 4, "duplicate": 1})
	assert.Equal(t, 1, h.logs.FilterMessageSnippet("without an event name").Len(), "said once")
}

func TestInputIsNotChangedAndNotKept(t *testing.T) {
	release := make(chan struct{})
	server := newHook(t, func(http.ResponseWriter, *http.Request) { <-release })
	cfg := to(server.URL)
	cfg.Workers = 1
	h := startHarness(t, only(cfg))
	assert.False(t, h.Capabilities().MutatesData)
	for _, id := range []string{"one", "two"} {
		logs := partial(id, names.EventRaised)
		h.send(logs)
		// The pipeline may do with its data what it likes once ConsumeLogs is back.
		record := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
		record.Body().SetStr("overwritten")
		record.Attributes().Clear()
	}
	close(release)
	h.record()
	h.record()
	for _, r := range server.received() {
		assert.Contains(t, string(r.body), "1 of 2 pods")
		assert.Contains(t, string(r.body), `"ratio":0.5`)
	}
}

// assertSkipped compares the records skipped, by reason.
func assertSkipped(t *testing.T, tel *componenttest.Telemetry, want map[string]int64) {
	t.Helper()
	var points []metricdata.DataPoint[int64]
	for reason, value := range want {
		points = append(points, metricdata.DataPoint[int64]{Value: value, Attributes: attribute.NewSet(attribute.String("reason", reason))})
	}
	metadatatest.AssertEqualExporterWebhookSkippedRecords(t, tel, points, metricdatatest.IgnoreTimestamp())
}

// assertDeliveries compares the deliveries counted, by receiver, outcome and
// error.type.
func assertDeliveries(t *testing.T, tel *componenttest.Telemetry, want map[[3]string]int64) {
	t.Helper()
	var points []metricdata.DataPoint[int64]
	for key, value := range want {
		attrs := []attribute.KeyValue{attribute.String("receiver", key[0]), attribute.String("outcome", key[1])}
		if key[2] != "" {
			attrs = append(attrs, attribute.String("error.type", key[2]))
		}
		points = append(points, metricdata.DataPoint[int64]{Value: value, Attributes: attribute.NewSet(attrs...)})
	}
	metadatatest.AssertEqualExporterWebhookDeliveries(t, tel, points, metricdatatest.IgnoreTimestamp())
}
