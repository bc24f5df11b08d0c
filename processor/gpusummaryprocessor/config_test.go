// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestConfigFromYAML(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	for id, want := range map[string]*Config{
		"gpu_summary": {
			Interval: 15 * time.Second, ExpectedPods: "seen", Staleness: 0, InitialInterval: 15 * time.Second,
			Warmup: 90 * time.Second, PartialThreshold: 0.25, IdleThreshold: 0.05, IdleFor: 15 * time.Minute,
			ServiceTTL: 10 * time.Minute, MaxPods: 200_000, MaxServices: 20_000,
		},
		"gpu_summary/all": {
			Interval: 30 * time.Second, ExpectedPods: "seen", Staleness: 2 * time.Minute, InitialInterval: 30 * time.Second,
			Warmup: 3 * time.Minute, PartialThreshold: 0.5, IdleThreshold: 0.1, IdleFor: time.Hour,
			ServiceTTL: 20 * time.Minute, MaxPods: 1000, MaxServices: 100,
		},
	} {
		sub, err := conf.Sub(id)
		require.NoError(t, err)
		cfg := createDefaultConfig()
		require.NoError(t, sub.Unmarshal(cfg))
		require.NoError(t, confmap.Validate(cfg))
		require.Equal(t, want, cfg)
	}
}

func TestConfigThatCannotWorkIsRefused(t *testing.T) {
	for _, tt := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Interval = 0 }, "interval must be at least 1s, got 0s"},
		{func(c *Config) { c.ExpectedPods = "kubernetes" }, `expected_pods: kubernetes is not in this version: use "seen"`},
		{func(c *Config) { c.ExpectedPods = "allocation" }, `expected_pods: allocation is not in this version: use "seen"`},
		{func(c *Config) { c.ExpectedPods = "" }, `expected_pods must be "seen", got ""`},
		{func(c *Config) { c.Staleness = -1 }, "staleness must be 0"},
		{func(c *Config) { c.InitialInterval = 0 }, "initial_interval must be above 0 and at most 6m0s"},
		{func(c *Config) { c.InitialInterval = 6*time.Minute + 1 }, "initial_interval must be above 0 and at most 6m0s"},
		{func(c *Config) { c.Warmup = -1 }, "warmup must not be negative"},
		{func(c *Config) { c.PartialThreshold = 25 }, "partial_threshold must be a ratio from 0 to 1, got 25"},
		{func(c *Config) { c.PartialThreshold = math.NaN() }, "partial_threshold must be a ratio"},
		{func(c *Config) { c.IdleThreshold = -0.1 }, "idle_threshold must be a ratio"},
		{func(c *Config) { c.IdleFor = 0 }, "idle_for must be positive"},
		{func(c *Config) { c.ServiceTTL = 90 * time.Second }, "service_ttl must be above 1m30s"},
		{func(c *Config) { c.Staleness = time.Hour }, "service_ttl must be above 1h0m0s"},
		{func(c *Config) { c.InitialInterval = 5 * time.Minute }, "service_ttl must be above 12m30s"},
		{func(c *Config) { c.MaxPods = 0 }, "max_pods must be at least 1"},
		{func(c *Config) { c.MaxServices = -1 }, "max_services must be at least 1"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			tt.change(cfg)
			require.ErrorContains(t, cfg.Validate(), tt.want)
		})
	}
}

func TestAllFaultsAreToldAtOnce(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Interval, cfg.MaxPods = 0, 0
	err := cfg.Validate()
	require.ErrorContains(t, err, "interval")
	require.ErrorContains(t, err, "max_pods")
}
