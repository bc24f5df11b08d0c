// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// report writes events into the log, oldest first.
func (w *world) report(events ...*store.Event) {
	w.t.Helper()
	require.NoError(w.t, w.store.AppendEvents(w.t.Context(), events))
}

func event(w *world, id, name, key, state, severity string, ago time.Duration) *store.Event {
	return &store.Event{
		ID: id, Name: name, Key: key, State: state, Severity: severity, Message: "What happened.", Time: w.now.Add(-ago),
		Resource:   map[string]any{"k8s.cluster.name": "c1", "k8s.namespace.name": "ml", "service.name": "chat"},
		Attributes: map[string]any{"gpu.event.id": id, "gpu.service.missing_ratio": 0.5},
	}
}

func TestEvents(t *testing.T) {
	w := newWorld(t)
	w.report(
		event(w, "e1", "gpu.service.partial", "k1", "raised", "warn", 4*time.Minute),
		event(w, "e2", "gpu.idle_held", "k2", "raised", "info", 3*time.Minute),
		event(w, "e3", "gpu.service.partial", "k1", "cleared", "info", 2*time.Minute),
		event(w, "e4", "gpu.xid", "k3", "raised", "error", time.Minute),
	)
	other := event(w, "e5", "custom", "", "", "", 30*time.Second)
	other.Resource = map[string]any{"host.name": "h1"}
	w.report(other)
	next := w.now.Add(time.Minute)
	for i, r := range []*audit.Record{
		{ID: "d1", Time: w.now.Add(-4 * time.Minute), Receiver: "ops", URLHost: "hooks.example.com", Format: "slack", Attempt: 1, MaxAttempts: 2, Outcome: audit.Failed, Status: 503,
			ErrorType: "http_5xx", NextAttempt: next, Durations: audit.Durations{Total: 250 * time.Millisecond}, Events: []audit.Event{{ID: "e1", Name: "gpu.service.partial"}}},
		{ID: "d2", Time: w.now.Add(-3 * time.Minute), Receiver: "ops", URLHost: "hooks.example.com", Format: "slack", Attempt: 2, MaxAttempts: 2, Outcome: audit.Succeeded, Status: 200, Events: []audit.Event{{ID: "e1", Name: "gpu.service.partial"}}},
		{ID: "d3", Time: w.now.Add(-10 * time.Second), Receiver: "ops", Outcome: audit.Dropped, ErrorType: "queue_full", Trigger: audit.TriggerTest, Events: []audit.Event{{ID: "t1", Name: "gpu.test"}}},
	} {
		w.store.KeepAudit(uint64(i+1), r)
	}
	require.Eventually(t, func() bool { return len(w.store.Deliveries(store.DeliveryQuery{})) == 3 }, 5*time.Second, time.Millisecond)
	c := serveAPI(t, w.store, w.now, nil)
	ids := func(query ...string) []string {
		var out []string
		for _, e := range ok[consoleapi.EventsAnswer](c, "events", values(query...)).Events {
			out = append(out, e.ID)
		}
		return out
	}
	all := ok[consoleapi.EventsAnswer](c, "events", nil)
	assert.Equal(t, 6, all.Total)
	assert.Equal(t, 1, all.Raised, "k1 was cleared, and the XID is a notice")
	assert.Equal(t, 1, all.Notices)
	none := ok[consoleapi.EventsAnswer](c, "events", values("name", "gpu.exporter.down"))
	assert.Zero(t, none.Raised+none.Notices, "of those that match")
	assert.Equal(t, []string{"t1", "e5", "e4", "e3", "e2", "e1"}, ids())
	assert.Equal(t, []string{"e3", "e1"}, ids("name", "gpu.service.partial"))
	assert.Equal(t, []string{"e4", "e3", "e1"}, ids("min_severity", "warn"), "and what clears them")
	assert.Equal(t, []string{"e4"}, ids("min_severity", "error"))
	assert.Equal(t, []string{"e4", "e3", "e2", "e1"}, ids("cluster", "c1", "namespace", "ml", "service", "chat"))
	assert.Empty(t, ids("namespace", "ml", "service", "chat"))

	first := all.Events[5]
	assert.Equal(t, "raised", *first.State)
	assert.Equal(t, "warn", *first.Severity)
	assert.Equal(t, consoleapi.Subject{Cluster: pointer("c1"), Namespace: pointer("ml"), Service: pointer("chat")}, first.Subject)
	assert.Equal(t, map[string]any{"gpu.service.missing_ratio": 0.5}, first.Attributes)
	require.Len(t, first.Deliveries, 2)
	assert.Equal(t, 503, *first.Deliveries[0].Status)
	assert.Equal(t, "http_5xx", *first.Deliveries[0].ErrorType)
	assert.Equal(t, next.UTC(), *first.Deliveries[0].NextAttempt)
	assert.Equal(t, 0.25, first.Deliveries[0].Duration)
	assert.Equal(t, "event", first.Deliveries[0].Trigger)
	assert.Nil(t, first.Deliveries[1].ErrorType)
	test := all.Events[0]
	assert.Equal(t, "gpu.test", test.Name)
	assert.Nil(t, test.Severity)
	assert.Equal(t, "A test of webhook endpoint ops, asked for with gpuctl webhook test.", *all.Events[0].Body)
	assert.Equal(t, "test", test.Deliveries[0].Trigger)
	assert.Nil(t, test.Deliveries[0].Status)
	assert.Nil(t, all.Events[1].State)
	assert.Equal(t, "h1", *all.Events[1].Subject.Node)
	assert.Equal(t, 1, *ok[consoleapi.StatusAnswer](c, "status", nil).Telemetry.RaisedEvents)
}

// New events between two pages neither repeat nor hide older ones.
func TestEventPages(t *testing.T) {
	w := newWorld(t)
	for i := range 7 {
		w.report(event(w, "e"+strconv.Itoa(i), "gpu.xid", strconv.Itoa(i), "raised", "error", time.Duration(70-i)*time.Second))
	}
	c := serveAPI(t, w.store, w.now, nil)
	var seen []string
	query := values("limit", "3")
	for range 3 {
		got := ok[consoleapi.EventsAnswer](c, "events", query)
		for _, e := range got.Events {
			seen = append(seen, e.ID)
		}
		if got.Next == nil {
			break
		}
		query.Set("cursor", *got.Next)
		w.report(event(w, "new"+*got.Next, "gpu.xid", "new"+*got.Next, "raised", "error", 0))
	}
	assert.Equal(t, []string{"e6", "e5", "e4", "e3", "e2", "e1", "e0"}, seen)
}

// Events are found by what people know of them, and what is active stands apart.
func TestEventsAreFound(t *testing.T) {
	w := newWorld(t)
	partial := event(w, "e1", "gpu.service.partial", "k1", "raised", "warn", 4*time.Minute)
	partial.Message = "Service chat is partial: pod chat-0 is missing."
	xid := event(w, "e2", "gpu.xid", "k2", "raised", "error", 3*time.Minute)
	xid.Resource = map[string]any{"k8s.node.name": "gpu-node-b"}
	xid.Attributes = map[string]any{"hw.id": "GPU-0000aaaa"}
	w.report(event(w, "e0", "gpu.throttle", "k0", "raised", "warn", 6*time.Minute), event(w, "c0", "gpu.throttle", "k0", "cleared", "info", 5*time.Minute), partial, xid)
	c := serveAPI(t, w.store, w.now, nil)
	for name, test := range map[string]struct{ query, want []string }{
		"a sentence":      {[]string{"q", "CHAT-0"}, []string{"e1"}},
		"a node":          {[]string{"q", "node-b"}, []string{"e2"}},
		"a device":        {[]string{"q", "0000aaaa"}, []string{"e2"}},
		"a name":          {[]string{"q", "throttle"}, []string{"c0", "e0"}},
		"nothing":         {[]string{"q", "elsewhere"}, nil},
		"what is active":  {[]string{"active", "true"}, []string{"e2", "e1"}},
		"active and text": {[]string{"active", "true", "q", "partial"}, []string{"e1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range ok[consoleapi.EventsAnswer](c, "events", values(test.query...)).Events {
				got = append(got, e.ID)
			}
			assert.Equal(t, test.want, got)
		})
	}
	assert.Equal(t, http.StatusBadRequest, c.get("events", values("active", "perhaps")).status)
}

// A notice counts until someone acknowledges it; the next one counts again. A
// condition is no notice, and another site's page cannot ask in one's name.
func TestAcknowledge(t *testing.T) {
	w := newWorld(t)
	w.report(
		event(w, "e1", "gpu.xid", "k1", "raised", "error", 3*time.Minute),
		event(w, "e2", "gpu.service.partial", "k2", "raised", "warn", 2*time.Minute),
	)
	c := serveAPI(t, w.store, w.now, nil)
	post := func(contentType, body string) answer {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/acknowledge", strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		return c.do(r)
	}
	notices := func() int { return ok[consoleapi.EventsAnswer](c, "events", nil).Notices }
	require.Equal(t, 1, notices())
	for name, test := range map[string]struct {
		contentType, body string
		status            int
	}{
		"another site's form": {"text/plain", `{"event_id":"e1"}`, http.StatusBadRequest},
		"no JSON":             {"application/json", `e1`, http.StatusBadRequest},
		"another key":         {"application/json", `{"id":"e1"}`, http.StatusBadRequest},
		"no id":               {"application/json", `{}`, http.StatusBadRequest},
		"unknown":             {"application/json", `{"event_id":"e9"}`, http.StatusNotFound},
		"a condition":         {"application/json", `{"event_id":"e2"}`, http.StatusBadRequest},
		"too long":            {"application/json", `{"event_id":"` + strings.Repeat("e", 5000) + `"}`, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			got := post(test.contentType, test.body)
			assert.Equal(t, test.status, got.status, "%s", got.body)
		})
	}
	assert.Equal(t, http.StatusMethodNotAllowed, c.get("acknowledge", nil).status)
	require.Equal(t, 1, notices(), "nothing of this was an acknowledgement")

	for range 2 { // twice is once
		got := post("application/json", `{"event_id":"e1"}`)
		require.Equal(t, http.StatusOK, got.status, "%s", got.body)
		assert.Zero(t, notices())
	}
	all := ok[consoleapi.EventsAnswer](c, "events", nil)
	require.Equal(t, 2, all.Total, "the record of it is no event")
	assert.Equal(t, w.now.UTC(), all.Events[1].Acknowledged.UTC())
	assert.False(t, all.Events[1].Active)
	assert.True(t, all.Events[0].Active)

	w.report(event(w, "e3", "gpu.xid", "k1", "raised", "error", 0))
	assert.Equal(t, 1, notices())
	w.report(event(w, "e4", "gpu.xid", "k1", "raised", "error", 0)) // while e3 is looked at
	require.Equal(t, http.StatusOK, post("application/json", `{"event_id":"e3"}`).status)
	assert.Equal(t, 1, notices(), "nobody has seen e4")
	all = ok[consoleapi.EventsAnswer](c, "events", nil)
	for _, e := range all.Events {
		assert.Equal(t, e.ID == "e3" || e.ID == "e1", e.Acknowledged != nil, e.ID)
	}
}
