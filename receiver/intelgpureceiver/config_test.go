// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intelgpureceiver

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape"
)

func TestDefaults(t *testing.T) {
	c := createDefaultConfig().(*Config)
	assert.Equal(t, 15*time.Second, c.CollectionInterval)
	assert.Equal(t, 5*time.Second, c.ExporterInterval)
	assert.ErrorContains(t, c.Validate(), "endpoints: is empty and kubernetes is not set: name the exporter (http://localhost:8080/metrics)")
}

func TestValidate(t *testing.T) {
	endpoints := func(urls ...string) Config { return Config{scrape.Config{Endpoints: urls}} }
	for name, tt := range map[string]struct {
		change func(*Config)
		want   string // key and remedy
	}{
		"one":                 {func(c *Config) { *c = with(endpoints("http://a:8080/metrics")) }, ""},
		"two of one host":     {func(c *Config) { *c = with(endpoints("http://a:8080", "http://a:29999")) }, ""},
		"two hosts":           {func(c *Config) { *c = with(endpoints("http://a:8080", "http://b:8080")) }, "endpoints::1: is on another host than the first: a GPU is identified by its node and PCI address, so use a receiver for each host (intel_gpu/a, intel_gpu/b), with node_name"},
		"an address of IPv6":  {func(c *Config) { *c = with(endpoints("http://[fd00::1]:8080")) }, "node_name: is empty, and the exporter's host cannot be a part of hw.id: set it to the name of the exporter's node"},
		"with the node":       {func(c *Config) { *c = with(endpoints("http://[fd00::1]:8080")); c.NodeName = "n" }, ""},
		"a node with a blank": {func(c *Config) { *c = with(endpoints("http://a:8080")); c.NodeName = "a b" }, `node_name: is "a b", which cannot be a part of hw.id: use the node's name, without blanks, "/", ":" and "@"`},
		"names":               {func(c *Config) { *c = with(endpoints("http://a:8080")); c.Names = "dcgm" }, "names: is \"dcgm\": use otel, exporter or both"},
		"no URL":              {func(c *Config) { *c = with(endpoints("a:8080")) }, "endpoints::0: has no scheme http or https: use http://host:8080/metrics"},
	} {
		var c Config
		tt.change(&c)
		if err := c.Validate(); tt.want == "" {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorContains(t, err, tt.want, name)
		}
	}
}

// with are the defaults with the endpoints of c.
func with(c Config) Config {
	all := *createDefaultConfig().(*Config)
	all.Endpoints = c.Endpoints
	return all
}

// TestNode: what stands for the node in hw.id.
func TestNode(t *testing.T) {
	here, err := os.Hostname()
	require.NoError(t, err)
	for endpoint, want := range map[string]string{
		"http://localhost:8080": here, "http://127.0.0.1:8080": here, "http://[::1]:8080": here,
		"http://gpu-7:8080": "gpu-7", "http://10.0.0.7:8080": "10.0.0.7",
	} {
		c := Config{scrape.Config{Endpoints: []string{endpoint}}}
		assert.Empty(t, c.node())
		assert.Equal(t, want, c.host(), endpoint)
	}
	c := Config{scrape.Config{Kubernetes: &scrape.KubernetesConfig{NodeName: "node-a"}}}
	assert.Equal(t, "node-a", c.node())
	assert.Empty(t, c.host())
}
