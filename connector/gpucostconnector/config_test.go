// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys/configkeystest"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

func TestConfigIsReadStrictly(t *testing.T) { configkeystest.Strict(t, createDefaultConfig) }

func TestDefaultsAreValid(t *testing.T) {
	require.NoError(t, createDefaultConfig().(*Config).Validate())
}

func TestConfig(t *testing.T) {
	conf, err := confmaptest.LoadConf("testdata/config.yaml")
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	assert.Len(t, cfg.Prices, 3)
	assert.Equal(t, prices.RuleConfig{
		Match:        map[string]string{"host.type": "gpu-h100-sxm_8gpu-*", "gpu.capacity.type": "spot"},
		InstanceHour: "10.00", GPUs: 8, ValidFrom: "2026-05-01", Source: "provider price list",
	}, cfg.Prices[0])
	assert.Equal(t, []string{"k8s.namespace.label.team", "k8s.namespace.name"}, cfg.Tenant.From)
	assert.Equal(t, map[string]share.Slices{"Board 9000": {Compute: 6, Memory: 6}}, cfg.MIGSlices)
	assert.Equal(t, []prices.BudgetConfig{{Name: "ml", Tenant: "ml", Cost: "5000", Period: "month", Timezone: "UTC"}}, cfg.Budgets)
	assert.InDelta(t, 1.2, cfg.Carbon.PUE, 0)
}

func TestConfigThatIsRefused(t *testing.T) {
	for _, tt := range []struct {
		values map[string]any
		err    string
	}{
		{map[string]any{"currency": "Euro"}, `currency: "Euro"`},
		{map[string]any{"prices": []any{map[string]any{"match": map[string]any{"hw.model": "*"}, "gpu_hour": "-1"}}}, `prices::0::gpu_hour: "-1"`},
		{map[string]any{"prices_file": "a", "prices": []any{map[string]any{"match": map[string]any{"hw.model": "*"}, "gpu_hour": "1"}}}, "prices_file: prices is set too"},
		{map[string]any{"budgets": []any{map[string]any{"name": "a"}}}, "budgets::0::cost: set either cost or hours"},
		{map[string]any{"carbon": map[string]any{"pue": 0.5}}, "carbon::pue: 0.5"},
		{map[string]any{"tenant": map[string]any{"from": []any{""}}}, "tenant::from::0: is empty"},
		{map[string]any{"mig_share": "max"}, `mig_share: "max": use compute, memory or mean`},
		{map[string]any{"mig_slices": map[string]any{"X": map[string]any{"compute": 7}}}, "mig_slices::X: compute 7, memory 0"},
		{map[string]any{"vgpu_share": "both"}, `vgpu_share: "both"`},
		{map[string]any{"per": "node"}, `per: "node": use service or pod`},
		{map[string]any{"allocation_ttl": "1s"}, "allocation_ttl: 1s: set it to 30s or more"},
		{map[string]any{"bridge": "1m"}, "bridge: 1m0s: set it to 5m0s or more"},
		{map[string]any{"idle_for": "2h"}, "idle_for: 2h0m0s"},
		{map[string]any{"flush_interval": "1s"}, "flush_interval: 1s"},
		{map[string]any{"idle_threshold": 5}, "idle_threshold: 5: it is a fraction"},
		{map[string]any{"max_rows": 0}, "max_rows: 0"},
		{map[string]any{"max_devices": -1}, "max_devices: -1"},
	} {
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, confmap.NewFromStringMap(tt.values).Unmarshal(cfg))
		assert.ErrorContains(t, cfg.Validate(), tt.err)
	}
}
