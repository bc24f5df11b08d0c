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

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Every format arrives as its receiver wants it, and PagerDuty's key arrives
// nowhere else.
func TestEveryFormatIsDelivered(t *testing.T) {
	for format := range encoders {
		t.Run(format, func(t *testing.T) {
			server := newHook(t, nil)
			cfg := to(server.URL)
			cfg.Format = format
			if format == formatPagerDuty {
				cfg.RoutingKey = testRoutingKey
			}
			h := startHarness(t, only(cfg))
			h.send(partial("0195-x", names.EventRaised))
			rec := h.record()
			require.Equal(t, audit.Succeeded, rec.Outcome)
			assert.Equal(t, format, rec.Format)

			got := server.received()
			require.Len(t, got, 1)
			assert.Equal(t, "application/json", got[0].header.Get("Content-Type"))
			e := eventOf(partial("0195-x", names.EventRaised))
			require.NoError(t, checkBody(format, got[0].body, []*event{e}))
			assert.Equal(t, format == formatPagerDuty, strings.Contains(string(got[0].body), testRoutingKey))

			kept, err := json.Marshal(rec)
			require.NoError(t, err)
			said := fmt.Sprint(got[0].header, string(kept))
			for _, line := range h.logs.All() {
				said += fmt.Sprint(line.Message, line.ContextMap())
			}
			assert.NotContains(t, said, testRoutingKey)
			assert.NotContains(t, fmt.Sprintf("%v %+v", cfg, cfg), testRoutingKey)
		})
	}
}

// What the document shows as configuration starts.
func TestDocumentedReceiversAreValid(t *testing.T) {
	doc, err := os.ReadFile(verifyDoc)
	require.NoError(t, err)
	text := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(doc)
	require.NotNil(t, text)
	filled := strings.NewReplacer(
		"${env:SLACK_URL}", "https://hooks.slack.com/services/T0/B0/x",
		"${env:PAGERDUTY_KEY}", testRoutingKey,
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
