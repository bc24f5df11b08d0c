// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// A webhook that sends nothing because no pipeline leads to it is reported.
func TestWebhooksInNoPipeline(t *testing.T) {
	r, err := confmap.NewRetrievedFromYAML([]byte(`
exporters: {debug: {}, webhook: {}, webhook/idle: {}, webhook/other: }
service:
  pipelines:
    logs/events: {receivers: [gpu_events], exporters: [debug, webhook]}
    logs/none:
`))
	require.NoError(t, err)
	conf, err := r.AsConf()
	require.NoError(t, err)
	core, logs := observer.New(zapcore.WarnLevel)
	c := &console{settings: extension.Settings{}}
	c.settings.Logger = zap.New(core)
	require.NoError(t, c.NotifyConfigSnapshot(t.Context(), extensioncapabilities.NewConfigSnapshot(conf, nil)))
	var unused []string
	for _, line := range logs.FilterMessageSnippet("exporter is in no pipeline").All() {
		unused = append(unused, line.ContextMap()["exporter"].(string))
	}
	assert.Equal(t, []string{"webhook/idle", "webhook/other"}, unused)
	require.NoError(t, c.NotifyConfigSnapshot(t.Context(), extensioncapabilities.NewConfigSnapshot(confmap.New(), nil)))
	require.NoError(t, c.NotifyConfigSnapshot(t.Context(), extensioncapabilities.NewConfigSnapshot(nil, nil)))
}
