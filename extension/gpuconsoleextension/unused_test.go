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

// What does nothing because no pipeline leads to it is reported.
func TestComponentsInNoPipeline(t *testing.T) {
	r, err := confmap.NewRetrievedFromYAML([]byte(`
receivers: {dcgm: {}, otlp: {}, gpu_allocation: {}}
processors: {gpu_pod: , gpu_summary: {}, batch: {}}
connectors: {gpu_cost: {}, gpu_events: {}, gpu_events/idle: {}}
exporters: {debug: {}, gpu_store: , webhook: {}, webhook/idle: {}, webhook/other: }
service:
  pipelines:
    metrics: {receivers: [dcgm], processors: [gpu_summary], exporters: [gpu_events]}
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
	var found []string
	for _, line := range logs.FilterMessageSnippet("in no pipeline").All() {
		found = append(found, line.ContextMap()["component"].(string))
		assert.NotEmpty(t, line.ContextMap()["effect"])
	}
	assert.Equal(t, []string{
		"receivers::gpu_allocation", "processors::gpu_pod", "connectors::gpu_cost", "connectors::gpu_events/idle",
		"exporters::gpu_store", "exporters::webhook/idle", "exporters::webhook/other",
	}, found)
	require.NoError(t, c.NotifyConfigSnapshot(t.Context(), extensioncapabilities.NewConfigSnapshot(confmap.New(), nil)))
	require.NoError(t, c.NotifyConfigSnapshot(t.Context(), extensioncapabilities.NewConfigSnapshot(nil, nil)))
}

// On a machine with GPUs of another vendor dcgm is in no pipeline, and nothing is missing.
func TestAReceiverInThePlaceOfDCGM(t *testing.T) {
	for receiver, want := range map[string][]configured{
		"amd_gpu/sysfs": nil, "gaudi": nil, "intel_gpu": nil, "otlp": {{"receivers", "dcgm"}},
	} {
		conf := confmap.NewFromStringMap(map[string]any{
			"receivers": map[string]any{"dcgm": nil, receiver: nil},
			"service":   map[string]any{"pipelines": map[string]any{"metrics": map[string]any{"receivers": []any{receiver}}}},
		})
		assert.Equal(t, want, unused(conf), receiver)
	}
}
