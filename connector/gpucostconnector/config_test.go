// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
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
		{map[string]any{"energy_split": "even"}, `energy_split: "even": use share or activity`},
		{map[string]any{"energy_split": "activity"}, "idle_watts: is empty"},
		{map[string]any{"idle_watts": map[string]any{"H100": 70}}, "idle_watts: energy is split by share"},
		{map[string]any{"energy_split": "activity", "idle_watts": map[string]any{"H100": -1}}, "idle_watts::H100: -1"},
		{map[string]any{"carbon": map[string]any{"pue": 1, "from_metric": map[string]any{"kind": "average"}}}, "carbon::from_metric::metric: is empty"},
		{map[string]any{"carbon": map[string]any{"pue": 1, "from_metric": map[string]any{"metric": "a"}}}, `carbon::from_metric::kind: ""`},
		{map[string]any{"prices": []any{map[string]any{"match": map[string]any{"hw.model": "*"}, "gpu_hour": "1", "price_metric": "a"}}}, "prices::0::gpu_hour: set either"},
		{map[string]any{"prices": []any{map[string]any{"match": map[string]any{"gpu.mig.profile": "*"}, "price_metric": "a"}}}, "prices::0::price_metric: it is the price of a whole GPU"},
		{map[string]any{"allocation_ttl": "1s"}, "allocation_ttl: 1s: set it to 30s or more"},
		{map[string]any{"bridge": "1m"}, "bridge: 1m0s: set it to 5m0s or more"},
		{map[string]any{"idle_for": "2h"}, "idle_for: 2h0m0s"},
		{map[string]any{"flush_interval": "1s"}, "flush_interval: 1s"},
		{map[string]any{"flush_interval": "5m"}, "flush_interval: 5m0s: set it to 10s or more, and to 4m0s at most"},
		{map[string]any{"idle_threshold": 5}, "idle_threshold: 5: it is a fraction"},
		{map[string]any{"max_rows": 0}, "max_rows: 0"},
		{map[string]any{"max_devices": -1}, "max_devices: -1"},
	} {
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, confmap.NewFromStringMap(tt.values).Unmarshal(cfg))
		assert.ErrorContains(t, cfg.Validate(), tt.err)
	}
}

func TestIdleWatts(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	assert.Nil(t, cfg.idleWatts())
	cfg.EnergySplit, cfg.IdleWatts = SplitByActivity, map[string]float64{"h100": 70, "H100 PCIe": 45.5, "A30": 30}
	require.NoError(t, cfg.Validate())
	watts := cfg.idleWatts()
	for model, want := range map[string]int64{"NVIDIA H100 80GB HBM3": 70_000, "NVIDIA H100 PCIe": 45_500, "NVIDIA A30": 30_000, "NVIDIA A300": 0} {
		got, known := watts(&ledger.Class{Model: model})
		assert.Equal(t, want, got, model)
		assert.Equal(t, want > 0, known, model)
	}
}
