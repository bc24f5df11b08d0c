// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A webhook exporter that no pipeline names is a finding, not a check to skip.
func TestWebhookInNoPipeline(t *testing.T) {
	results := of(t, `{exporters: {webhook: {}, webhook/idle: {}}, service: {pipelines: {logs: {receivers: [otlp], exporters: [debug]}}}}`).checkWebhooks(t.Context())
	assert.Equal(t, []Result{
		{"webhook", "webhook", Warn, "no pipeline names it: nothing is sent to its receivers", "name it in service::pipelines::logs/events::exporters, or remove it"},
		{"webhook", "webhook/idle", Warn, "no pipeline names it: nothing is sent to its receivers", "name it in service::pipelines::logs/events::exporters, or remove it"},
	}, results)
	assert.Equal(t, Skipped, of(t, `{exporters: {debug: {}}, service: {pipelines: {logs: {receivers: [otlp], exporters: [debug]}}}}`).checkWebhooks(t.Context())[0].Status)
}
