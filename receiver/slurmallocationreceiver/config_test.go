// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package slurmallocationreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestValidate(t *testing.T) {
	require.NoError(t, createDefaultConfig().(*Config).Validate())
	for want, change := range map[string]func(*Config){
		`directory: "jobs" is no absolute path`:            func(c *Config) { c.Directory = "jobs" },
		`root_path: "" is no absolute path`:                func(c *Config) { c.RootPath = "" },
		`format: is "gcm": use otelcol-gpu, dcgm`:          func(c *Config) { c.Format = "gcm" },
		`index_order: is "nvml": use pci, minor`:           func(c *Config) { c.IndexOrder = "nvml" },
		`verify: is "yes": use none, cgroup`:               func(c *Config) { c.Verify = "yes" },
		`inside: is "pod": use none, kubernetes`:           func(c *Config) { c.Inside = "pod" },
		`identity: is "none": use job, account`:            func(c *Config) { c.Identity = "none" },
		`service: is "name": use user_job`:                 func(c *Config) { c.Service = "name" },
		`service: user_job has the user in it`:             func(c *Config) { c.Identity, c.Service = "account", "user_job" },
		`poll_interval: is 100ms: use 1s to 1m0s`:          func(c *Config) { c.PollInterval = 100 * time.Millisecond },
		`collection_interval: is 1h0m0s`:                   func(c *Config) { c.CollectionInterval = time.Hour },
		`stale_after: is 1s: use 5s to 1h0m0s`:             func(c *Config) { c.StaleAfter = time.Second },
		`name_wait: is 1h0m0s`:                             func(c *Config) { c.NameWait = time.Hour },
		`max_files: is 0: use 1 to 65536`:                  func(c *Config) { c.MaxFiles = 0 },
		`max_file_size: is 10: use 1024 to 1048576`:        func(c *Config) { c.MaxFileSize = 10 },
		`node_name: "a b" is no name`:                      func(c *Config) { c.NodeName = "a b" },
		`cluster_name: is empty, and files of format dcgm`: func(c *Config) { c.Format = "dcgm" },
		`k8s_cluster_name: "a/b" is no name`:               func(c *Config) { c.K8sClusterName = "a/b" },
	} {
		cfg := createDefaultConfig().(*Config)
		change(cfg)
		assert.ErrorContains(t, cfg.Validate(), want)
	}
}
