// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func decoded[T any](t *testing.T, format string, events ...*event.Event) T {
	body, err := testEncoders[format].Encode(events)
	require.NoError(t, err)
	var out T
	require.NoError(t, json.Unmarshal(body, &out))
	return out
}

// conditionEvent is an event of one of two conditions of one service.
func conditionEvent(id, key, state string, severity plog.SeverityNumber, at time.Duration) *event.Event {
	logs := plog.NewLogs()
	addStory(logs, id, state, severity)
	e := eventOf(logs)
	e.Key, e.Time = key, storyTime.Add(at)
	return e
}

// A receiver pairs what was raised with what was cleared by the fingerprint or
// by the group's key, although severity, texts and details differ.
func TestAlertsOfAConditionHaveOneFingerprint(t *testing.T) {
	raised := decoded[alertmanagerBody](t, "alertmanager", storyEvents()["raised"]...)
	cleared := decoded[alertmanagerBody](t, "alertmanager", storyEvents()["cleared"]...)
	assert.Equal(t, raised.Alerts[0].Fingerprint, cleared.Alerts[0].Fingerprint)
	assert.Equal(t, raised.Alerts[0].Labels, cleared.Alerts[0].Labels)
	assert.Equal(t, raised.GroupKey, cleared.GroupKey)
	assert.Equal(t, []string{"firing", "resolved"}, []string{raised.Status, cleared.Status})
	assert.EqualValues(t, "warn", raised.Alerts[0].Annotations["severity"])

	// Alone, a clearing does not know when its condition began, and states so.
	assert.Equal(t, cleared.Alerts[0].EndsAt, cleared.Alerts[0].StartsAt)
	assert.EqualValues(t, "true", cleared.Alerts[0].Annotations["starts_at_unknown"])
	assert.NotContains(t, raised.Alerts[0].Annotations, "starts_at_unknown")

	xid := decoded[alertmanagerBody](t, "alertmanager", storyEvents()["xid"]...)
	assert.NotEqual(t, raised.Alerts[0].Fingerprint, xid.Alerts[0].Fingerprint)
	assert.NotEqual(t, raised.GroupKey, xid.GroupKey)
}

// What surrounds a device may change while a condition lasts: who holds it, on
// which node it is, what its driver is.
func TestOwnerAndNodeAreNoLabels(t *testing.T) {
	raised := storyEvents()["xid"][0]
	moved := *raised
	moved.Resource = map[string]any{names.K8sClusterName: "prod", names.HwID: "GPU-5f1c0a3e", names.HwDriverVersion: "580.1", names.K8sPodName: "other", names.ServiceName: "chat"}
	moved.State = names.EventCleared
	a, b := labelsOf(raised), labelsOf(&moved)
	assert.Equal(t, a, b)
}

func TestEventsWithoutKeyAreAlertsOfTheirOwn(t *testing.T) {
	one, two := conditionEvent("1", "", "", plog.SeverityNumberWarn, 0), conditionEvent("2", "", "", plog.SeverityNumberWarn, 0)
	body := decoded[alertmanagerBody](t, "alertmanager", one, two)
	assert.Len(t, body.Alerts, 2)
	assert.Equal(t, "firing", body.Status)
}

func TestOneConditionIsOneAlertOfAMessage(t *testing.T) {
	const r, c = names.EventRaised, names.EventCleared
	tests := []struct {
		name    string
		states  []string
		status  string
		starts  time.Duration
		unknown bool
		earlier string
	}{
		{"raised, cleared", []string{r, c}, "resolved", 0, false, "0"},
		{"raised twice", []string{r, r}, "firing", 0, false, "0"},
		{"cleared, raised", []string{c, r}, "firing", time.Minute, false, "0"},
		{"cleared twice", []string{c, c}, "resolved", 0, true, "0"},
		{"raised, cleared, raised", []string{r, c, r}, "firing", 2 * time.Minute, false, "0,1"},
		{"raised, cleared, raised, cleared", []string{r, c, r, c}, "resolved", 2 * time.Minute, false, "0,1,2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var events []*event.Event
			for i, state := range tt.states {
				events = append(events, conditionEvent(string(rune('0'+i)), "key", state, plog.SeverityNumberWarn, time.Duration(i)*time.Minute))
			}
			body := decoded[alertmanagerBody](t, "alertmanager", events...)
			require.Len(t, body.Alerts, 1)
			a := body.Alerts[0]
			assert.Equal(t, tt.status, a.Status)
			assert.Equal(t, tt.status, body.Status)
			assert.Equal(t, storyTime.Add(tt.starts), a.StartsAt)
			_, unknown := a.Annotations["starts_at_unknown"]
			assert.Equal(t, tt.unknown, unknown)
			assert.EqualValues(t, tt.earlier, a.Annotations["gpu_event_ids_earlier"])
		})
	}
}

// Clocks of two sources may differ: no alert ends before it starts.
func TestClearingBeforeItsRaising(t *testing.T) {
	raised := conditionEvent("1", "key", names.EventRaised, plog.SeverityNumberWarn, time.Minute)
	cleared := conditionEvent("2", "key", names.EventCleared, plog.SeverityNumberInfo, 0)
	a := decoded[alertmanagerBody](t, "alertmanager", raised, cleared).Alerts[0]
	assert.Equal(t, storyTime, a.StartsAt)
	assert.Equal(t, storyTime, a.EndsAt)
	assert.EqualValues(t, "true", a.Annotations["starts_at_unknown"])
}

// A message about some alerts of a node does not pass for one about others.
func TestGroupKeyOfSeveralAlerts(t *testing.T) {
	of := func(key string) *event.Event {
		return conditionEvent("id"+key, key, names.EventRaised, plog.SeverityNumberWarn, 0)
	}
	group := func(keys ...string) string {
		var events []*event.Event
		for _, key := range keys {
			events = append(events, of(key))
		}
		return decoded[alertmanagerBody](t, "alertmanager", events...).GroupKey
	}
	assert.Equal(t, group("a", "b"), group("b", "a"))
	assert.NotEqual(t, group("a", "b"), group("a", "c"))
	assert.NotEqual(t, group("a", "b"), group("a", "b", "c"))
}

func TestLabelName(t *testing.T) {
	for name, want := range map[string]string{
		"k8s.node.name": "k8s_node_name", "plain": "plain", "9lives": "key_9lives", "__name__": "name__",
		"": "key", "...": "key", "größe": "gr__e", "a b\"c": "a_b_c",
	} {
		assert.Equal(t, want, labelName(name), name)
	}
}

func TestAttributesOfOneLabelNameShareIt(t *testing.T) {
	e := storyEvents()["raised"][0]
	e.Attributes["same.name"], e.Attributes["same_name"] = "x", "y"
	e.Attributes["starts_at_unknown"] = "an attribute must not pass for ours"
	a := decoded[alertmanagerBody](t, "alertmanager", e).Alerts[0]
	assert.EqualValues(t, "x; y", a.Annotations["same_name"])
	assert.NotContains(t, a.Annotations, "starts_at_unknown")
}

func TestPagerDutyActions(t *testing.T) {
	long := strings.Repeat("k", 256)
	tests := []struct {
		name       string
		key, state string
		action     string
		dedup      string
	}{
		{"raised", "key", names.EventRaised, "trigger", "key"},
		{"cleared", "key", names.EventCleared, "resolve", "key"},
		{"a notice", "key", "", "trigger", "key"},
		{"a notice without key", "", "", "trigger", "id"},
		{"a clearing without key resolves nothing", "", names.EventCleared, "resolve", "id"},
		{"the longest key", long[:255], names.EventRaised, "trigger", long[:255]},
		{"too long a key", long, names.EventRaised, "trigger", ""},
		{"too long a key, cleared", long, names.EventCleared, "resolve", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := decoded[pagerDutyBody](t, "pagerduty", conditionEvent("id", tt.key, tt.state, plog.SeverityNumberError, 0))
			assert.Equal(t, tt.action, body.EventAction)
			if len(tt.key) > 255 {
				assert.Regexp(t, "^sha256:[0-9a-f]{64}$", body.DedupKey)
				assert.Equal(t, dedupKey(&event.Event{Event: eventrecord.Event{Key: tt.key}}), body.DedupKey)
				assert.NotEqual(t, dedupKey(&event.Event{Event: eventrecord.Event{Key: tt.key + "k"}}), body.DedupKey)
				return
			}
			assert.Equal(t, tt.dedup, body.DedupKey)
		})
	}
}

func TestPagerDutySeverity(t *testing.T) {
	for n, want := range map[plog.SeverityNumber]string{
		plog.SeverityNumberFatal: "critical", plog.SeverityNumberFatal4: "critical", plog.SeverityNumberError: "error",
		plog.SeverityNumberWarn2: "warning", plog.SeverityNumberInfo: "info", plog.SeverityNumberDebug: "info", plog.SeverityNumberTrace: "info",
	} {
		assert.Equal(t, want, pagerDutySeverity(n))
	}
}

func TestPagerDutySource(t *testing.T) {
	tests := []struct {
		resource map[string]any
		source   string
		group    string
	}{
		{map[string]any{names.K8sNodeName: "n1", names.HostName: "h1", names.HwID: "GPU-1"}, "n1", ""},
		{map[string]any{names.HostName: "h1"}, "h1", ""},
		{map[string]any{names.HwID: "GPU-1", names.K8sClusterName: "prod"}, "GPU-1", "prod"},
		{map[string]any{names.ServiceName: "chat", names.K8sClusterName: "prod", names.K8sNamespaceName: "ml"}, "chat", "prod/ml"},
		{map[string]any{names.K8sNamespaceName: "ml"}, "unknown", "ml"},
		{map[string]any{names.K8sClusterName: " "}, "unknown", ""},
	}
	for _, tt := range tests {
		body := decoded[pagerDutyBody](t, "pagerduty", &event.Event{Event: eventrecord.Event{ID: "id", Name: "gpu.x", Time: storyTime, Resource: tt.resource}})
		assert.Equal(t, tt.source, body.Payload.Source, "%v", tt.resource)
		assert.Equal(t, tt.group, body.Payload.Group, "%v", tt.resource)
	}
}

// A notification shows the text alone: it states what happened without blocks,
// and without colours.
func TestSlackTextStandsAlone(t *testing.T) {
	body := decoded[slackBody](t, "slack", storyEvents()["group"]...)
	lines := strings.Split(body.Text, "\n")
	require.Len(t, lines, 3)
	assert.True(t, strings.HasPrefix(lines[1], "ERROR raised: gpu.xid: GPU GPU-5f1c0a3e on node-7"), lines[1])

	silent := &event.Event{Event: eventrecord.Event{ID: "id", Name: "gpu.device.lost", Severity: plog.SeverityNumberError, State: names.EventRaised, Time: storyTime,
		Resource: map[string]any{names.HwID: "GPU-1"}}}
	assert.Equal(t, "ERROR raised: gpu.device.lost: GPU-1", decoded[slackBody](t, "slack", silent).Text, "without a sentence, what it is about")
}

func TestSlackShowsWhenThereIsMore(t *testing.T) {
	shows := func(e *event.Event) bool {
		body := decoded[slackBody](t, "slack", e)
		b, err := json.Marshal(body.Blocks[len(body.Blocks)-1])
		require.NoError(t, err)
		return strings.Contains(string(b), "more in the event than shown")
	}
	assert.False(t, shows(storyEvents()["xid"][0]))
	assert.True(t, shows(manyAttributes()))
	bounded := *storyEvents()["xid"][0]
	bounded.Truncated = true
	assert.True(t, shows(&bounded), "the event itself was bounded")
}

func TestSlackEscape(t *testing.T) {
	tests := []struct {
		in    string
		limit int
		want  string
	}{
		{"a <b> & c", 100, "a &lt;b&gt; &amp; c"},
		{"<!channel> hi", 100, "&lt;!channel&gt; hi"},
		{"@here @Channel @everyone, a@b.example", 100, "@ here @ Channel @ everyone, a@b.example"},
		{"&amp;", 100, "&amp;amp;"},
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"a<<<", 5, "a…"}, // an entity is never cut in two
		{"🔥🔥", 3, "🔥…"},
		{"abc", 0, ""},
		{"", 5, ""},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.want, slackEscape(tt.in, tt.limit), tt.in)
	}
}

func TestMissingPods(t *testing.T) {
	pods := func(n int) []any {
		var out []any
		for i := range n {
			out = append(out, string(rune('a'+i)))
		}
		return out
	}
	tests := []struct {
		attributes map[string]any
		want       string
	}{
		{map[string]any{}, ""},
		{map[string]any{names.GPUServiceMissingPodCount: int64(0)}, ""},
		{map[string]any{names.GPUServiceMissingPods: pods(2)}, "2: a, b"},
		{map[string]any{names.GPUServiceMissingPods: pods(2), names.GPUServiceMissingPodCount: int64(2), names.GPUServiceSettledPodCount: int64(4)}, "2 of 4: a, b"},
		{map[string]any{names.GPUServiceMissingPods: pods(12), names.GPUServiceMissingPodCount: int64(70)}, "70: a, b, c, d, e, f, g, h, i, j and 60 more"},
		{map[string]any{names.GPUServiceMissingPodCount: int64(3)}, "3"},
		{map[string]any{names.GPUServiceMissingPods: "not a list"}, ""},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.want, missingPods(&event.Event{Event: eventrecord.Event{Attributes: tt.attributes}}), "%v", tt.attributes)
	}
}
