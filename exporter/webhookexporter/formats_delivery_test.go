// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/format"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const routingKey = "0123456789abcdefABCDEF0123456789"

// Every format arrives as its receiver wants it, and PagerDuty's key arrives
// nowhere else.
func TestEveryFormatIsDelivered(t *testing.T) {
	for _, f := range format.All() {
		t.Run(f.Name, func(t *testing.T) {
			server := newHook(t, nil)
			cfg := to(server.URL)
			cfg.Config = f.Example
			cfg.Format = f.Name
			h := startHarness(t, only(cfg))
			h.send(partial("0195-x", names.EventRaised))
			rec := h.record()
			require.Equal(t, audit.Succeeded, rec.Outcome)
			assert.Equal(t, f.Name, rec.Format)

			got := server.received()
			require.Len(t, got, 1)
			assert.Equal(t, "application/json", got[0].header.Get("Content-Type"))
			encoder, err := format.New("ops", cfg.Config)
			require.NoError(t, err)
			rl := partial("0195-x", names.EventRaised).ResourceLogs().At(0)
			want, err := encoder.Encode([]*event.Event{{Event: eventrecord.Read(rl.ScopeLogs().At(0).LogRecords().At(0), rl.Resource(), eventTime)}})
			require.NoError(t, err)
			assert.Equal(t, string(want), string(got[0].body))
			assert.Equal(t, f.Name == "pagerduty", strings.Contains(string(got[0].body), routingKey))

			kept, err := json.Marshal(rec)
			require.NoError(t, err)
			written := fmt.Sprint(got[0].header, string(kept))
			for _, line := range h.logs.All() {
				written += fmt.Sprint(line.Message, line.ContextMap())
			}
			assert.NotContains(t, written, routingKey)
			assert.NotContains(t, fmt.Sprintf("%v %+v", cfg, cfg), routingKey)
		})
	}
}

// What the document shows as configuration starts.
func TestDocumentedReceiversAreValid(t *testing.T) {
	doc, err := os.ReadFile("../../docs/webhooks.md")
	require.NoError(t, err)
	text := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(doc)
	require.NotNil(t, text)
	filled := strings.NewReplacer(
		"${env:SLACK_URL}", "https://hooks.slack.com/services/T0/B0/x",
		"${env:PAGERDUTY_KEY}", routingKey,
		"${env:BILLING_WHSEC}", string(whsec(1)),
	).Replace(string(text[1]))
	retrieved, err := confmap.NewRetrievedFromYAML([]byte(filled))
	require.NoError(t, err)
	conf, err := retrieved.AsConf()
	require.NoError(t, err)
	conf, err = conf.Sub("exporters::webhook")
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	assert.Len(t, cfg.Receivers, 3)
}

func TestPagerDutyHasAnAddress(t *testing.T) {
	cfg := endpoint.Config{Config: format.Config{Format: "pagerduty", PagerDutyConfig: format.PagerDutyConfig{RoutingKey: routingKey}}}
	target, err := endpoint.New("pager", cfg, endpoint.Defaults{})
	require.NoError(t, err)
	assert.Equal(t, "https://events.pagerduty.com/v2/enqueue", target.URL.String())
	c := createDefaultConfig().(*Config)
	c.Receivers = only(cfg)
	require.NoError(t, c.Validate())

	cfg.URL = "https://events.eu.pagerduty.com/v2/enqueue"
	target, err = endpoint.New("pager", cfg, endpoint.Defaults{})
	require.NoError(t, err)
	assert.Equal(t, "events.eu.pagerduty.com", target.Host)

	cfg.RoutingKey = cfg.RoutingKey[1:]
	_, err = endpoint.New("pager", cfg, endpoint.Defaults{})
	require.ErrorContains(t, err, "receivers::pager::routing_key: is not 32 letters and digits")

	_, err = endpoint.New("ops", endpoint.Config{Config: format.Config{Format: "slack"}}, endpoint.Defaults{})
	assert.ErrorContains(t, err, "receivers::ops::url: is empty")
}
