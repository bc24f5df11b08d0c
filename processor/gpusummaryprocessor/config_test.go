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

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
)

func TestConfigFromYAML(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	serviceAccount := k8sclient.Config{AuthType: k8sclient.ServiceAccount}
	dra := gpupods.DRA{
		Enabled:       true,
		Drivers:       []string{"gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com", "gaudi.intel.com"},
		DeviceClasses: []string{"gpu.nvidia.com", "mig.nvidia.com", "gpu.amd.com", "gpu.intel.com", "gaudi.intel.com"},
	}
	for id, want := range map[string]*Config{
		"gpu_summary": {
			Config: serviceAccount, AllocationTTL: 5 * time.Minute, Keys: gpupods.Keys{ResourceNames: resourcenames.Default(), DRA: dra},
			Interval: 15 * time.Second, ExpectedPods: "seen", Staleness: 0, InitialInterval: 15 * time.Second,
			Warmup: 90 * time.Second, ReconnectGrace: 150 * time.Second, PartialThreshold: 0.25, IdleThreshold: 0.05, IdleFor: 15 * time.Minute,
			ServiceTTL: 10 * time.Minute, MaxPods: 200_000, MaxServices: 20_000,
		},
		"gpu_summary/all": {
			Config:        k8sclient.Config{AuthType: k8sclient.KubeConfig, Context: "staging"},
			AllocationTTL: 2 * time.Minute, ClusterName: "east",
			Keys: gpupods.Keys{
				Namespaces: []string{"shop", "train"}, ResourceNames: []string{"nvidia.com/gpu"},
				DRA: gpupods.DRA{Enabled: true, Drivers: []string{"gpu.nvidia.com"}, DeviceClasses: []string{"gpu.nvidia.com", "big-gpu"}},
			},
			Interval: 30 * time.Second, ExpectedPods: "kubernetes", Staleness: 2 * time.Minute, InitialInterval: 30 * time.Second,
			Warmup: 3 * time.Minute, ReconnectGrace: 4 * time.Minute, PartialThreshold: 0.5, IdleThreshold: 0.1, IdleFor: time.Hour,
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
		{func(c *Config) { c.ExpectedPods = "" }, `expected_pods must be "kubernetes", "allocation" or "seen", got ""`},
		{func(c *Config) { c.AuthType = "none" }, `expected_pods: kubernetes needs the Kubernetes API: set auth_type, or expected_pods to "allocation"`},
		{func(c *Config) { c.Namespaces = []string{"shop", "Shop"} }, `namespaces::1: "Shop" is no name of a namespace`},
		{func(c *Config) { c.Namespaces = []string{"shop", "shop"} }, `namespaces::1: "shop" is named twice`},
		{func(c *Config) { c.UnobservedNodes = []string{"virtual-*", "a b"} }, `unobserved_nodes::1: "a b" is no name of a node`},
		{func(c *Config) { c.UnobservedNodes = []string{"*"} }, `unobserved_nodes::0: "*" is no name of a node`},
		{func(c *Config) { c.Storage = &diskID }, `storage is of use with expected_pods: seen alone`},
		{func(c *Config) { c.ResourceNames = nil }, `resource_names is empty`},
		{func(c *Config) { c.ResourceNames = []string{"gpu"} }, `resource_names::0: "gpu" is no resource name`},
		{func(c *Config) { c.DRA.Drivers = nil }, `dra::drivers is empty`},
		{func(c *Config) { c.DRA.Drivers = []string{"a b"} }, `dra::drivers::0: "a b" is no name`},
		{func(c *Config) { c.DRA.DeviceClasses = []string{"a b"} }, `dra::device_classes::0: "a b" is no name`},
		{func(c *Config) { c.AllocationTTL = 0 }, `allocation_ttl must be positive`},
		{func(c *Config) { c.Staleness = -1 }, "staleness must be 0"},
		{func(c *Config) { c.InitialInterval = 0 }, "initial_interval must be above 0 and at most 6m0s"},
		{func(c *Config) { c.InitialInterval = 6*time.Minute + 1 }, "initial_interval must be above 0 and at most 6m0s"},
		{func(c *Config) { c.Warmup = -1 }, "warmup must not be negative"},
		{func(c *Config) { c.ReconnectGrace = -1 }, "reconnect_grace must be 0 to 1h"},
		{func(c *Config) { c.ReconnectGrace = time.Hour + 1 }, "reconnect_grace must be 0 to 1h"},
		{func(c *Config) { c.PartialThreshold = 25 }, "partial_threshold must be a ratio from 0 to 1, got 25"},
		{func(c *Config) { c.PartialThreshold = math.NaN() }, "partial_threshold must be a ratio"},
		{func(c *Config) { c.IdleThreshold = -0.1 }, "idle_threshold must be a ratio"},
		{func(c *Config) { c.FirstUseThreshold = 1.5 }, "first_use_threshold must be a ratio from 0 to 1 (0 measures nothing), got 1.5"},
		{func(c *Config) { c.FirstUseThreshold, c.ExpectedPods = 0.01, "seen" }, "first_use_threshold is 0.01, and when a pod started is known with expected_pods: kubernetes alone"},
		{func(c *Config) { c.IdleFor = 0 }, "idle_for must be positive"},
		{func(c *Config) { c.ServiceTTL = 90 * time.Second }, "service_ttl must be above 1m30s"},
		{func(c *Config) { c.Staleness = time.Hour }, "service_ttl must be above 1h0m0s"},
		{func(c *Config) { c.InitialInterval = 5 * time.Minute }, "service_ttl must be above 12m30s"},
		{func(c *Config) { c.MaxPods = 0 }, "max_pods must be at least 1"},
		{func(c *Config) { c.MaxServices = -1 }, "max_services must be at least 1"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.ExpectedPods = "kubernetes"
			require.NoError(t, cfg.Validate())
			tt.change(cfg)
			require.ErrorContains(t, cfg.Validate(), tt.want)
		})
	}
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Interval, cfg.MaxPods = 0, 0
	err := cfg.Validate()
	require.ErrorContains(t, err, "interval")
	require.ErrorContains(t, err, "max_pods")
}
