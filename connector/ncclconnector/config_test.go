// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ncclconnector

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestConfigFromYAML(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	plain := createDefaultConfig().(*Config)
	plain.Scope = ScopeCommunicator
	for id, want := range map[string]*Config{
		"nccl": plain,
		"nccl/all": {
			Scope: ScopeRank, Interval: 5 * time.Second, MaxCommunicators: 7, PathIdentity: `^/scratch/(?P<job>[0-9]+)/`,
			SamplesPerInterval: 40, RankTTL: 20 * time.Minute, NodeName: "node-7", ClusterName: "east", MaxSeries: 100, MaxFiles: 10,
			Window: 30 * time.Second, Straggler: StragglerConfig{0.6, 0.1, 2}, StallAfter: 10 * time.Minute, MaxRanks: 128, MaxWaitingBytes: 2_000_000,
		},
	} {
		sub, err := conf.Sub(id)
		require.NoError(t, err)
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, sub.Unmarshal(cfg))
		require.NoError(t, confmap.Validate(cfg))
		require.Equal(t, want, cfg)
		if want.PathIdentity == "" {
			continue
		}
		for range 2 { // Validate reads them too
			paths, err := cfg.paths()
			require.NoError(t, err)
			require.Len(t, paths, 1)
			require.Equal(t, []string{"", "job"}, paths[0].SubexpNames())
		}
	}
	assert.Equal(t, 20_000, plain.maxCommunicators())
	plain.Scope = ScopeRank
	assert.Equal(t, 512, plain.maxCommunicators())
}

func TestConfigThatCannotWorkIsRefused(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`scope: "": set it to rank on the nodes`:                    func(c *Config) { c.Scope = "" },
		"interval: 0s: set it to 1s or more":                        func(c *Config) { c.Interval = 0 },
		"rank_ttl: 1s: set it to 1m0s or more":                      func(c *Config) { c.RankTTL = time.Second },
		"window: 2h0m0s: set it to 10s or more, and to 1h0m0s":      func(c *Config) { c.Window = 2 * time.Hour },
		"stall_after: 0s: set it to 1m0s or more":                   func(c *Config) { c.StallAfter = 0 },
		"max_communicators: -1: set it to 0 or more":                func(c *Config) { c.MaxCommunicators = -1 },
		"samples_per_interval: 0: set it to 1 or more":              func(c *Config) { c.SamplesPerInterval = 0 },
		"max_series: 0: set it to 1 or more":                        func(c *Config) { c.MaxSeries = 0 },
		"max_files: 0: set it to 1 or more":                         func(c *Config) { c.MaxFiles = 0 },
		"straggler::windows: 0: set it to 1 or more":                func(c *Config) { c.Straggler.Windows = 0 },
		"straggler::share: 1: it is a fraction":                     func(c *Config) { c.Straggler.Share = 1 },
		"straggler::cost: NaN: it is a fraction":                    func(c *Config) { c.Straggler.Cost = math.NaN() },
		"max_ranks: 1: set it to 2 or more":                         func(c *Config) { c.MaxRanks = 1 },
		"max_waiting_bytes: 64: set it to 1048576 or more":          func(c *Config) { c.MaxWaitingBytes = 64 },
		"path_identity: error parsing regexp: missing closing )":    func(c *Config) { c.PathIdentity = "(" },
		`path_identity: "/x" has the named groups []: name`:         func(c *Config) { c.PathIdentity = "/x" },
		`has the named groups [job pod]: name (?P<namespace>…) and`: func(c *Config) { c.PathIdentity = "(?P<pod>x)(?P<job>y)" },
	} {
		cfg := createDefaultConfig().(*Config)
		cfg.Scope = ScopeRank
		require.NoError(t, cfg.Validate())
		change(cfg)
		require.ErrorContains(t, cfg.Validate(), want)
	}
}
