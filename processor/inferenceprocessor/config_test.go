// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inferenceprocessor

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys/configkeystest"
)

func TestConfigIsReadStrictly(t *testing.T) { configkeystest.Strict(t, createDefaultConfig) }

func TestConfig(t *testing.T) {
	require.NoError(t, createDefaultConfig().(*Config).Validate())
	for want, change := range map[string]func(*Config){
		`names: "normalized": use one of normalised, raw, both`:                               func(c *Config) { c.Names = "normalized" },
		`unmapped: "": use one of keep, drop`:                                                 func(c *Config) { c.Unmapped = "" },
		`histogram_bounds: 0: set it between 1 and 4096; the default is 64`:                   func(c *Config) { c.HistogramBounds = 0 },
		`max_series: 10000001: set it between 1 and 10000000; the default is 100000`:          func(c *Config) { c.MaxSeries = 10_000_001 },
		`max_models: -1: set it between 1 and 100000; the default is 100`:                     func(c *Config) { c.MaxModels = -1 },
		`engines::ollama: no such engine: use one of `:                                        func(c *Config) { c.Engines = map[string]EngineConfig{"ollama": {}} },
		`attributes::1: "k8s_pod_name" would name a resource or be taken for an attribute of`: func(c *Config) { c.Attributes = []string{"priority", "k8s_pod_name"} },
	} {
		c := createDefaultConfig().(*Config)
		change(c)
		assert.ErrorContains(t, c.Validate(), want)
	}
}

// An engine is on unless enabled is false: its name alone changes nothing.
func TestEngines(t *testing.T) {
	for _, c := range []struct {
		name string
		vllm any
		on   bool
	}{
		{"no keys", map[string]any{}, true},
		{"no value", nil, true},
		{"true", map[string]any{"enabled": true}, true},
		{"false", map[string]any{"enabled": false}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			require.NoError(t, confmap.NewFromStringMap(map[string]any{"engines": map[string]any{"vllm": c.vllm}}).Unmarshal(cfg))
			var on []string
			for _, e := range cfg.engines() {
				on = append(on, e.Name)
			}
			assert.Equal(t, c.on, slices.Contains(on, "vllm"))
			assert.Contains(t, on, "sglang")
		})
	}
}
