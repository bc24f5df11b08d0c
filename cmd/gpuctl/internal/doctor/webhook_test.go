// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A webhook exporter that no pipeline names is a finding, not a check to skip.
func TestWebhookInNoPipeline(t *testing.T) {
	results := of(t, `{exporters: {webhook: {}, webhook/idle: {}}, service: {pipelines: {logs: {receivers: [otlp], exporters: [debug]}}}}`).check(t, "webhook")
	assert.Equal(t, []Result{
		{Check: "webhook", Subject: "webhook", Status: Warn, Seen: "no pipeline names it: nothing is sent to its receivers", Remedy: "name it in service::pipelines::logs/events::exporters, or remove it"},
		{Check: "webhook", Subject: "webhook/idle", Status: Warn, Seen: "no pipeline names it: nothing is sent to its receivers", Remedy: "name it in service::pipelines::logs/events::exporters, or remove it"},
	}, results)
	assert.Equal(t, Skipped, of(t, `{exporters: {debug: {}}, service: {pipelines: {logs: {receivers: [otlp], exporters: [debug]}}}}`).check(t, "webhook")[0].Status)
}
