// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// What became of an endpoint's last deliveries, the newest first, and whether it
// gets them.
func TestEndpoints(t *testing.T) {
	d := func(outcome audit.Outcome, kind audit.ErrorType, ago time.Duration) *store.Delivery {
		return &store.Delivery{Receiver: "ops", Outcome: outcome, ErrorType: kind, Time: now.Add(-ago), EventIDs: []string{"e"}}
	}
	again := func(d *store.Delivery) *store.Delivery { d.NextAttempt = now.Add(time.Minute); return d }
	well := d(audit.Succeeded, "", time.Hour)
	for name, test := range map[string]struct {
		deliveries []*store.Delivery
		severity   consoleapi.Severity // empty: it gets them
		text       string
	}{
		"none":           {},
		"delivered":      {deliveries: []*store.Delivery{well, d(audit.Failed, audit.ErrorGone, 2*time.Hour)}},
		"switched off":   {[]*store.Delivery{d(audit.Dropped, audit.ErrorGone, time.Minute), d(audit.Failed, audit.ErrorGone, time.Hour), well}, "error", "410 Gone"},
		"blocked":        {[]*store.Delivery{d(audit.Blocked, audit.ErrorSSRFBlocked, time.Minute)}, "error", "allow_cidrs"},
		"tried again":    {[]*store.Delivery{again(d(audit.Failed, audit.ErrorTimeout, time.Minute)), well}, "warn", "the last attempt (timeout); it is tried again"},
		"given up":       {[]*store.Delivery{d(audit.Failed, audit.ErrorTimeout, time.Minute), again(d(audit.Failed, audit.ErrorTimeout, time.Hour))}, "error", "the last 2 attempts (timeout); some were given up"},
		"queue full":     {[]*store.Delivery{d(audit.Dropped, audit.ErrorQueueFull, time.Minute)}, "error", "queue_full"},
		"the end of us":  {deliveries: []*store.Delivery{d(audit.Dropped, audit.ErrorShutdown, time.Minute), d(audit.Failed, audit.ErrorInterrupted, time.Minute), well}},
		"long ago":       {deliveries: []*store.Delivery{d(audit.Failed, audit.ErrorGone, EndpointFor)}},
		"days ago, 410s": {[]*store.Delivery{d(audit.Failed, audit.ErrorGone, 3*24*time.Hour)}, "error", "410 Gone"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Endpoints(test.deliveries, now)
			if test.severity == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			assert.Equal(t, test.severity, got[0].Severity)
			assert.Contains(t, got[0].Text, test.text)
			assert.Equal(t, "ops", *got[0].Endpoint)
		})
	}
}

// An audit log that was set aside counts for a week, once.
func TestAuditLogThatWasSetAside(t *testing.T) {
	aside := func(ago time.Duration) *store.Delivery {
		return &store.Delivery{Trigger: audit.TriggerSetAside, Outcome: audit.Failed, Time: now.Add(-ago)}
	}
	got := Endpoints([]*store.Delivery{aside(time.Hour), aside(2 * time.Hour)}, now)
	require.Len(t, got, 1)
	assert.Contains(t, got[0].Text, "audit log")
	assert.Equal(t, now.Add(-time.Hour), *got[0].Since)
	assert.Nil(t, got[0].Endpoint)
	assert.Empty(t, Endpoints([]*store.Delivery{aside(EndpointFor)}, now))
}

// A notice is no raised condition, and counts until it is resolved or a day old.
func TestNotices(t *testing.T) {
	zero, code := 0, 79
	for name, test := range map[string]struct {
		event    string
		severity string
		ago      time.Duration
		last     *int
		want     bool
	}{
		"fresh":                      {names.EventXID, "fatal", time.Minute, nil, true},
		"old":                        {names.EventXID, "fatal", NoticeFor, nil, false},
		"the GPU still shows it":     {names.EventXID, "error", time.Hour, &code, true},
		"the GPU was reset":          {names.EventXID, "error", time.Hour, &zero, false},
		"the gauge may lag behind":   {names.EventXID, "error", time.Minute, &zero, true},
		"XIDs do not report ECC":     {names.EventECCUncorrected, "error", time.Hour, &zero, true},
		"nothing that anyone can do": {names.EventXID, "info", time.Minute, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := &store.Event{Name: test.event, Key: "k", State: names.EventRaised, Severity: test.severity, Time: now.Add(-test.ago)}
			assert.Equal(t, test.want, Counts(e, now, test.last))
			assert.Empty(t, Read([]*store.Event{e}, now).Raised)
		})
	}
}

// The reasons of throttling are a list; logs of older versions have it as a text in JSON.
func TestThrottleLabel(t *testing.T) {
	for name, value := range map[string]any{"list": []any{"hw_thermal", "sw_thermal"}, "text": `["hw_thermal","sw_thermal"]`} {
		e := &store.Event{Name: names.EventThrottle, Attributes: map[string]any{names.GPUThrottleReasons: value}}
		_, label := kindOf(e)
		assert.Equal(t, "throttled: hw thermal, sw thermal", label, name)
	}
	_, label := kindOf(&store.Event{Name: names.EventThrottle})
	assert.Equal(t, "throttled", label)
}

// An acknowledged notice is over, and the counter behind it brings it back no more
// than the event.
func TestAcknowledgedNotice(t *testing.T) {
	xid := &store.Event{
		Name: names.EventXID, Key: "k", State: names.EventRaised, Severity: "fatal", Time: now.Add(-time.Hour),
		Resource: map[string]any{names.K8sClusterName: "c1", names.HwID: "GPU-1"}, Attributes: map[string]any{names.GPUXIDCode: 79.0},
	}
	xid.ID = "e1"
	again := *xid
	again.ID = "e2"
	seen := Acknowledgement("a1", xid, now.Add(-time.Minute))
	old := *xid
	old.Time = now.Add(-NoticeFor)
	device := Device{ID: Place{"c1", "GPU-1"}, Label: "GPU 1", XIDs: []string{"79"}}
	for name, test := range map[string]struct {
		log  []*store.Event
		want int
	}{
		"raised":       {[]*store.Event{xid}, 1},
		"acknowledged": {[]*store.Event{seen, xid}, 0},
		"and again":    {[]*store.Event{&again, seen, xid}, 1},
		"meanwhile":    {[]*store.Event{seen, &again, xid}, 1},
		"both":         {[]*store.Event{Acknowledgement("a2", &again, now), seen, &again, xid}, 0},
		"no event":     {nil, 1},
		// What the counters show of a day is a moment older than the log's.
		"a day ago":              {[]*store.Event{&old}, 0},
		"acknowledged a day ago": {[]*store.Event{seen, &old}, 0},
	} {
		f := Find(Read(test.log, now), &Telemetry{Devices: []Device{device}})
		assert.Len(t, f.Device(device.ID), test.want, name)
	}
}

// What a service was the last to own is its concern only while it misses
// something: else its pods went elsewhere.
func TestFormerOwners(t *testing.T) {
	lost := Device{
		ID: Place{"c1", "GPU-1"}, Node: Place{"c1", "n"}, Label: "GPU 1", Lost: true, Owners: []Owner{{Namespace: "ml", Service: "chat", Pod: "chat-0"}},
	}
	chat := Service{Cluster: "c1", Namespace: "ml", Name: "chat"}
	missing := []consoleapi.Reason{{Kind: consoleapi.MissingPods, Severity: consoleapi.SeverityWarn}}
	f := Find(Read(nil, now), &Telemetry{Devices: []Device{lost}})
	assert.Empty(t, f.Service(chat, nil))
	assert.Equal(t, []consoleapi.Attention{consoleapi.LostDevice, consoleapi.MissingPods}, Kinds(f.Service(chat, missing)))
	lost.Current = true
	f = Find(Read(nil, now), &Telemetry{Devices: []Device{lost}})
	assert.Equal(t, []consoleapi.Attention{consoleapi.LostDevice}, Kinds(f.Service(chat, nil)))
}

// An exporter that is scraped by an address is known by it to events, and by its
// node to telemetry: that is one reason, of the node.
func TestExporterOfANodeIsOneReason(t *testing.T) {
	node := Place{Name: "n"}
	event := &store.Event{
		ID: "e", Name: names.EventExporterDown, Key: "k", State: names.EventRaised, Severity: "warn", Time: now, Message: "It is so.",
		Resource: map[string]any{names.ServerAddress: "10.0.0.1", names.ServerPort: 9400},
	}
	f := Find(Read([]*store.Event{event}, now), &Telemetry{Exporters: []Exporter{{Node: node, Address: "10.0.0.1", Port: "9400", LastSeen: now}}})
	for place, got := range map[string][]consoleapi.Reason{"fleet": f.All(nil, nil), "node": f.Node(node)} {
		require.Len(t, got, 1, place)
		assert.Equal(t, "It is so.", got[0].Text)
		assert.Equal(t, "n", *got[0].Subject.Node)
	}
}
