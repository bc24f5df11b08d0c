// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

var update = flag.Bool("update", false, "write the golden bodies of all formats anew")

const testRoutingKey = "0123456789abcdefABCDEF0123456789"

// testEncoders are the encoders of an endpoint, by format.
var testEncoders = func() map[string]Encoder {
	all := map[string]Encoder{}
	for _, f := range All() {
		c := f.Example
		c.Format = f.Name
		e, err := New("ops.team-a", c)
		if err != nil {
			panic(err)
		}
		all[f.Name] = e
	}
	return all
}()

// storyEvents are the events of the golden bodies.
func storyEvents() map[string][]*event.Event {
	one := func(fill func(plog.LogRecord, pcommon.Map)) *event.Event {
		logs := plog.NewLogs()
		rl := logs.ResourceLogs().AppendEmpty()
		record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		record.SetTimestamp(pcommon.NewTimestampFromTime(storyTime))
		rl.Resource().Attributes().PutStr(names.K8sClusterName, "prod")
		fill(record, rl.Resource().Attributes())
		return eventOf(logs)
	}
	describe := func(record plog.LogRecord, name, id, key, state string, severity plog.SeverityNumber) pcommon.Map {
		record.SetEventName(name)
		record.SetSeverityNumber(severity)
		record.Attributes().PutStr(names.GPUEventID, id)
		record.Attributes().PutStr(names.GPUEventKey, key)
		record.Attributes().PutStr(names.GPUEventState, state)
		return record.Attributes()
	}
	partial := func(id, state string, severity plog.SeverityNumber, after time.Duration) *event.Event {
		return one(func(record plog.LogRecord, resource pcommon.Map) {
			resource.PutStr(names.K8sNamespaceName, "ml")
			resource.PutStr(names.ServiceName, "chat")
			record.SetTimestamp(pcommon.NewTimestampFromTime(storyTime.Add(after)))
			attrs := describe(record, "gpu.service.partial", id, "gpu.service.partial/prod/ml/chat", state, severity)
			if state == names.EventCleared {
				record.Body().SetStr("Service chat in namespace ml of cluster prod is no longer partial: none of 4 settled pods is missing.")
				attrs.PutInt(names.GPUServiceMissingPodCount, 0)
			} else {
				record.Body().SetStr("Service chat in namespace ml of cluster prod is partial: 2 of 4 settled pods are missing (chat-0, chat-2).")
				pods := attrs.PutEmptySlice(names.GPUServiceMissingPods)
				pods.AppendEmpty().SetStr("chat-0")
				pods.AppendEmpty().SetStr("chat-2")
				attrs.PutInt(names.GPUServiceMissingPodCount, 2)
				attrs.PutDouble(names.GPUServiceMissingRatio, 0.5)
			}
			attrs.PutInt(names.GPUServiceSettledPodCount, 4)
		})
	}
	xid := one(func(record plog.LogRecord, resource pcommon.Map) {
		resource.PutStr(names.K8sNodeName, "node-7")
		resource.PutStr(names.HwID, "GPU-5f1c0a3e")
		record.Body().SetStr("GPU GPU-5f1c0a3e on node-7 reports XID 79: the GPU has fallen off the bus.")
		attrs := describe(record, "gpu.xid", "0195-xid", "gpu.xid/prod/GPU-5f1c0a3e", names.EventRaised, plog.SeverityNumberError)
		attrs.PutInt(names.GPUXIDCode, 79)
		attrs.PutStr(names.GPUXIDMnemonic, "GPU_HAS_FALLEN_OFF_THE_BUS")
		attrs.PutStr(names.GPUXIDMeaning, "The driver cannot reach the GPU over PCIe.")
		attrs.PutStr(names.GPUXIDAction, "Drain the node & reset the GPU; if it returns, replace <it>.")
		attrs.PutBool(names.GPUXIDFatal, true)
	})
	test := one(func(record plog.LogRecord, _ pcommon.Map) {
		describe(record, "gpu.webhook.test", "0195-test", "", "", plog.SeverityNumberInfo)
		record.Body().SetStr("A test of this webhook.")
	})
	test.Trigger = audit.TriggerTest
	replay := partial("0195-raised", names.EventRaised, plog.SeverityNumberWarn, 0)
	replay.Trigger = audit.TriggerReplay
	raised := partial("0195-raised", names.EventRaised, plog.SeverityNumberWarn, 0)
	cleared := partial("0195-cleared", names.EventCleared, plog.SeverityNumberInfo, 5*time.Minute)
	return map[string][]*event.Event{
		"raised": {raised}, "cleared": {cleared}, "xid": {xid}, "test": {test}, "replay": {replay},
		"group": {raised, xid, cleared},
	}
}

// Every format's bodies, as they are sent. The bodies of format alertmanager
// are also read by Alertmanager's own types, in the testbed.
func TestGoldenBodies(t *testing.T) {
	for story, events := range storyEvents() {
		for format, enc := range testEncoders {
			if len(events) > enc.Group {
				continue
			}
			t.Run(format+"/"+story, func(t *testing.T) {
				body, err := enc.Encode(events)
				require.NoError(t, err)
				require.NoError(t, checkBody(format, body, events))
				var pretty bytes.Buffer
				require.NoError(t, json.Indent(&pretty, body, "", "  "))
				pretty.WriteByte('\n')
				golden := filepath.Join("testdata", "bodies", format+"-"+story+".json")
				if *update {
					require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
					require.NoError(t, os.WriteFile(golden, pretty.Bytes(), 0o644))
				}
				want, err := os.ReadFile(golden)
				require.NoError(t, err)
				assert.Equal(t, string(want), pretty.String())
			})
		}
	}
}

// nastyText holds what must not get through as it is.
var nastyTexts = map[string]string{
	"empty":         "",
	"blank":         " \t\n ",
	"megabyte":      strings.Repeat("x", 1<<20),
	"wide megabyte": strings.Repeat("推", 1<<20),
	"astral":        strings.Repeat("🔥", 5000),
	"reserved":      strings.Repeat("<&>", 5000),
	"control":       "a\x00b\x1b[2Jc\r\nd\x7f",
	"bidi":          "ab\u202ecd\u2066ef",
	"zero width":    "a\u200bb\ufeffc@\u200bhere",
	"HTML":          `<script>alert("x")</script><img src=x onerror=y>&amp;`,
	"markdown":      "*bold* _it_ ~no~ `code` ```block``` > quote [x](http://evil.example)",
	"mention":       "<!channel> <!here|x> <@U123> <#C1> <!subteam^S1> @here @channel @EVERYONE a@here.example",
	"link":          "<http://evil.example|safe.example> https://evil.example mailto:a@b.example",
	"not UTF-8":     "a\xff\xfe\xc0b",
	"quotes":        strings.Repeat(`"\`, 3000),
	"backticks":     strings.Repeat("`", 300),
	"number":        "4711",
	"underscores":   "____",
}

// nastyEvent puts one text wherever a text from outside can stand.
func nastyEvent(text string, state string) *event.Event {
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName(text)
	if eventrecord.Name(record) == "" { // which would be no event
		record.SetEventName("gpu.odd")
	}
	record.SetSeverityText(text)
	record.Body().SetStr(text)
	attrs, resource := record.Attributes(), rl.Resource().Attributes()
	for _, name := range []string{names.K8sClusterName, names.K8sNamespaceName, names.ServiceName, names.K8sNodeName, names.HwID, text} {
		resource.PutStr(name, text)
	}
	for _, name := range []string{names.GPUEventID, names.GPUEventKey, names.GPUXIDCode, names.GPUXIDMnemonic, names.GPUXIDMeaning, names.GPUXIDAction, names.GPUXIDFatal, text} {
		attrs.PutStr(name, text)
	}
	attrs.PutStr(names.GPUEventState, state)
	pods := attrs.PutEmptySlice(names.GPUServiceMissingPods)
	for range 60 {
		pods.AppendEmpty().SetStr(text)
	}
	return eventOf(logs)
}

// manyAttributes is an event at the limits of what an event may hold.
func manyAttributes() *event.Event {
	logs := plog.NewLogs()
	record := addStory(logs, "id", names.EventRaised, plog.SeverityNumberFatal)
	for i := range eventrecord.MaxEntries {
		record.Attributes().PutStr(fmt.Sprintf("%d attribute & `%d`", i, i), strings.Repeat("<", 100))
		record.Attributes().PutStr(fmt.Sprintf("same.name_%d", i%3), "x")
		record.Attributes().PutStr(fmt.Sprintf("same_name.%d", i%3), "y")
	}
	return eventOf(logs)
}

func TestNastyEventsAreAcceptedByTheirReceivers(t *testing.T) {
	events := map[string]*event.Event{"128 attributes": manyAttributes(), "nothing at all": {Event: eventrecord.Event{ID: "id", Name: "x", Time: storyTime}}}
	for name, text := range nastyTexts {
		events[name] = nastyEvent(text, names.EventRaised)
		events[name+", cleared"] = nastyEvent(text, names.EventCleared)
		events[name+", as state"] = nastyEvent(text, text)
	}
	for name, e := range events {
		for format, enc := range testEncoders {
			for _, n := range []int{1, 2, enc.Group} {
				if n > enc.Group {
					continue
				}
				group := make([]*event.Event, n)
				for i := range group {
					group[i] = e
					if i%2 == 1 { // not the same condition each time
						other := *e
						other.Key, other.ID = fmt.Sprint(i), fmt.Sprint("id-", i)
						group[i] = &other
					}
				}
				body, err := enc.Encode(group)
				require.NoError(t, err, "%s, %s, %d", format, name, n)
				assert.NoError(t, checkBody(format, body, group), "%s, %s, %d", format, name, n)
			}
		}
	}
}

// Every format states that an event is a test or was sent before, and states
// nothing of the kind of others.
func TestTriggerIsInEveryFormat(t *testing.T) {
	for format, enc := range testEncoders {
		e := *storyEvents()["raised"][0]
		encode := func(trigger audit.Trigger) string {
			e.Trigger = trigger
			body, err := enc.Encode([]*event.Event{&e})
			require.NoError(t, err)
			return strings.ToLower(string(body))
		}
		plain, test, replay := encode(audit.TriggerEvent), encode(audit.TriggerTest), encode(audit.TriggerReplay)
		assert.NotContains(t, plain, "test", format)
		assert.NotContains(t, plain, "replay", format)
		assert.Regexp(t, `"test":"?true|\[test\]`, test, format)
		assert.NotContains(t, test, "replay", format)
		assert.Regexp(t, `"replay":"?true|\[replay\]`, replay, format)
		assert.NotContains(t, replay, "test", format)
	}
}

func TestRoutingKey(t *testing.T) {
	tests := []struct {
		name   string
		format string
		key    string
		want   string
	}{
		{"right", "pagerduty", testRoutingKey, ""},
		{"from a file", "pagerduty", testRoutingKey + "\n", ""},
		{"missing", "pagerduty", "", "routing_key: is empty; format pagerduty needs"},
		{"blank", "pagerduty", " ", "routing_key: is empty"},
		{"too short", "pagerduty", testRoutingKey[1:], "routing_key: is not 32 letters and digits"},
		{"too long", "pagerduty", testRoutingKey + "0", "routing_key: is not 32 letters and digits"},
		{"other characters", "pagerduty", testRoutingKey[1:] + "-", "routing_key: is not 32 letters and digits"},
		{"of another format", "slack", testRoutingKey, "routing_key: belongs to format pagerduty, and the format is slack"},
		{"of the default format", "", testRoutingKey, "the format is standard"},
		{"blank, of another format", "slack", "\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := New("ops", Config{Format: tt.format, PagerDutyConfig: PagerDutyConfig{RoutingKey: configopaque.String(tt.key)}})
			if tt.want == "" {
				require.NoError(t, err)
				body, err := e.Encode(storyEvents()["raised"])
				require.NoError(t, err)
				assert.Equal(t, tt.format == "pagerduty", strings.Contains(string(body), `"`+testRoutingKey+`"`))
				assert.Equal(t, tt.format == "pagerduty", slices.Equal(e.Secrets, []string{"routing_key"}))
				return
			}
			require.ErrorContains(t, err, tt.want)
			assert.True(t, strings.HasPrefix(err.Error(), "routing_key: "))
			if tt.key != "" && tt.key != " " {
				assert.NotContains(t, err.Error(), tt.key[1:31], "a secret is never shown")
			}
		})
	}
}

// The table of formats is complete: names are different, the default is there, and every setting
// has a format that it belongs to.
func TestFormats(t *testing.T) {
	names, keys := map[string]bool{}, map[string]bool{"format": true}
	for _, f := range All() {
		assert.False(t, names[f.Name], f.Name)
		names[f.Name] = true
		assert.Positive(t, f.Group, f.Name)
		for _, key := range f.Keys {
			assert.False(t, keys[key], key)
			keys[key] = true
		}
	}
	var walk func(reflect.Type)
	walk = func(config reflect.Type) {
		for i := range config.NumField() {
			if field := config.Field(i); field.Anonymous {
				walk(field.Type)
			} else {
				assert.True(t, keys[field.Tag.Get("mapstructure")], field.Name)
			}
		}
	}
	walk(reflect.TypeFor[Config]())
	f, known := Find("")
	assert.True(t, known)
	assert.Equal(t, "standard", f.Name)
	_, err := New("ops", Config{Format: "teams"})
	sorted := slices.Sorted(maps.Keys(names))
	assert.EqualError(t, err, `format: "teams" is not supported; use one of `+strings.Join(sorted, ", "))
}

// FuzzFormats puts texts everywhere and groups events: what comes out is what
// the receivers' documentation allows.
func FuzzFormats(f *testing.F) {
	for _, text := range nastyTexts {
		f.Add(text[:min(len(text), 2000)], names.EventRaised, uint8(3), true)
	}
	f.Fuzz(func(t *testing.T, text, state string, n uint8, same bool) {
		for format, enc := range testEncoders {
			group := make([]*event.Event, 1+int(n)%enc.Group)
			for i := range group {
				group[i] = nastyEvent(text, state)
				if !same {
					group[i].Key += fmt.Sprint(i)
				}
			}
			body, err := enc.Encode(group)
			if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			if err := checkBody(format, body, group); err != nil {
				t.Fatalf("%s: %v\n%s", format, err, body)
			}
		}
	})
}
