// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gputrainingprocessor

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpuspecs"
)

func TestConfigFromYAML(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	for id, want := range map[string]*Config{
		"gpu_training": {Interval: 15 * time.Second, Window: 2 * time.Minute, RunTTL: 10 * time.Minute, MaxRuns: 5000, MaxDevices: 100_000},
		"gpu_training/all": {
			Interval: 30 * time.Second, Window: 5 * time.Minute, RunTTL: 20 * time.Minute, MaxRuns: 10, MaxDevices: 100, FP8Peak: "bf16",
			Models: []Model{{Model: "NVIDIA Imaginary 9000", TFLOPS: map[string]float64{"bf16": 1234.5, "fp8": 2469}, Source: "a data sheet"}},
		},
	} {
		sub, err := conf.Sub(id)
		require.NoError(t, err)
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, sub.Unmarshal(cfg))
		require.NoError(t, confmap.Validate(cfg))
		require.Equal(t, want, cfg)
	}
}

func TestConfigThatCannotWorkIsRefused(t *testing.T) {
	model := func(change func(*Model)) func(*Config) {
		return func(c *Config) {
			m := Model{Model: "x", TFLOPS: map[string]float64{"bf16": 1}, Source: "y"}
			change(&m)
			c.Models = []Model{m}
		}
	}
	for _, tt := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Interval = 0 }, "interval must be at least 1s, got 0s"},
		{func(c *Config) { c.Window = time.Second }, "window must be from 10s to 1h, got 1s"},
		{func(c *Config) { c.FP8Peak = "int8" }, `fp8_peak must be "bf16", "fp8" or empty`},
		{func(c *Config) { c.RunTTL = time.Minute }, "run_ttl must be at least window, 2m0s, got 1m0s"},
		{func(c *Config) { c.MaxRuns = 0 }, "max_runs must be at least 1, got 0"},
		{func(c *Config) { c.MaxDevices = 0 }, "max_devices must be at least 1, got 0"},
		{model(func(m *Model) { m.Model = "" }), "models::0::model is empty"},
		{model(func(m *Model) { m.Source = "" }), "models::0::source is empty"},
		{model(func(m *Model) { m.TFLOPS = nil }), "models::0::tflops is empty"},
		{model(func(m *Model) { m.TFLOPS["int4"] = 1 }), "models::0::tflops::int4 is no precision"},
		{model(func(m *Model) { m.TFLOPS["bf16"] = math.NaN() }), "models::0::tflops::bf16 must be above 0"},
		{model(func(m *Model) { m.TFLOPS["bf16"] = 989e12 }), "models::0::tflops::bf16 must be above 0 and below 1000000"},
	} {
		cfg := createDefaultConfig().(*Config)
		tt.change(cfg)
		assert.ErrorContains(t, confmap.Validate(cfg), tt.want)
	}
}

// A model of the configuration goes before the table.
func TestModels(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Models = []Model{{Model: "NVIDIA L40S", TFLOPS: map[string]float64{"bf16": 300}, Source: "measured"}}
	lookup := cfg.training().Lookup
	for model, want := range map[string]float64{"NVIDIA L40S": 300e12, "NVIDIA H200": 989e12} {
		spec, ok := lookup(model)
		require.True(t, ok)
		peak, ok := spec.Peak(gpuspecs.BF16)
		assert.True(t, ok)
		assert.InEpsilon(t, want, peak, 1e-12)
	}
}
