// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestConfigFromYAML(t *testing.T) {
	all, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	for _, name := range []string{"gpu_console", "gpu_console/all"} {
		sub, err := all.Sub(name)
		require.NoError(t, err)
		c := createDefaultConfig().(*Config)
		require.NoError(t, sub.Unmarshal(c))
		require.NoError(t, c.Validate())
		if name == "gpu_console" {
			assert.Equal(t, createDefaultConfig(), c)
			assert.Equal(t, "localhost:8480", c.NetAddr.Endpoint)
			continue
		}
		assert.Equal(t, "0.0.0.0:8480", c.NetAddr.Endpoint)
		assert.Equal(t, "bearertokenauth", c.Auth.Get().Config.AuthenticatorID.String())
		assert.Equal(t, "gpu_store/mimir", c.Store.String())
		assert.Equal(t, "/gpu", c.PathPrefix)
		assert.Equal(t, 500, c.MaxServicesPerRequest)
		assert.Equal(t, map[string]string{"ns": "namespace", "svc": "service"}, c.Grafana.Variables)
		assert.Equal(t, 5*time.Minute, c.StaleAfter)
	}
}

func TestConfigIsValidated(t *testing.T) {
	authenticated := configoptional.Some(confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: component.MustNewID("bearertokenauth")}})
	for name, test := range map[string]struct {
		change func(*Config)
		want   string // empty is valid
	}{
		"default":                 {func(*Config) {}, ""},
		"everybody":               {func(c *Config) { c.NetAddr.Endpoint = "0.0.0.0:8480" }, "auth::authenticator"},
		"another machine":         {func(c *Config) { c.NetAddr.Endpoint = "gpu-gateway:8480" }, "endpoint:"},
		"all with a token":        {func(c *Config) { c.NetAddr.Endpoint, c.Auth = ":8480", authenticated }, ""},
		"all without an address":  {func(c *Config) { c.NetAddr.Endpoint = ":8480" }, "auth::authenticator"},
		"loopback":                {func(c *Config) { c.NetAddr.Endpoint = "[::1]:8480" }, ""},
		"mapped loopback":         {func(c *Config) { c.NetAddr.Endpoint = "[::ffff:127.0.0.1]:8480" }, ""},
		"socket":                  {func(c *Config) { c.NetAddr = confignet.AddrConfig{Endpoint: "/run/c.sock", Transport: "unix"} }, ""},
		"no endpoint":             {func(c *Config) { c.NetAddr.Endpoint = "" }, "endpoint: is empty"},
		"no such port":            {func(c *Config) { c.NetAddr.Endpoint = "localhost:84800" }, "use a number from 1 to 65535"},
		"no port":                 {func(c *Config) { c.NetAddr.Endpoint = "localhost" }, "endpoint:"},
		"prefix":                  {func(c *Config) { c.PathPrefix = "/a/b-c" }, ""},
		"prefix with a slash":     {func(c *Config) { c.PathPrefix = "/a/" }, "path_prefix"},
		"prefix without":          {func(c *Config) { c.PathPrefix = "a" }, "path_prefix"},
		"hostile prefix":          {func(c *Config) { c.PathPrefix = "/<script>" }, "path_prefix"},
		"host with a port":        {func(c *Config) { c.AllowedHosts = []string{"a:80"} }, "allowed_hosts"},
		"any host":                {func(c *Config) { c.AllowedHosts = []string{"*"} }, "allowed_hosts"},
		"no services":             {func(c *Config) { c.MaxServicesPerRequest = 0 }, "max_services_per_request: 0 is not within 1 and 500"},
		"too many services":       {func(c *Config) { c.MaxServicesPerRequest = 501 }, "max_services_per_request"},
		"no requests":             {func(c *Config) { c.MaxConcurrentRequests = 0 }, "max_concurrent_requests"},
		"too many requests":       {func(c *Config) { c.MaxConcurrentRequests = 51 }, "max_concurrent_requests: 51 is not within 1 and 50"},
		"too many points":         {func(c *Config) { c.MaxPointsPerSeries = 5001 }, "max_points_per_series"},
		"no lines":                {func(c *Config) { c.MaxSeriesPerRange = 0 }, "max_series_per_range"},
		"no time":                 {func(c *Config) { c.QueryTimeout = 0 }, "query_timeout"},
		"breaker":                 {func(c *Config) { c.CircuitBreaker.Failures = 0 }, "circuit_breaker::failures"},
		"breaker that never ends": {func(c *Config) { c.CircuitBreaker.OpenFor = time.Hour }, "circuit_breaker::open_for"},
		"negative staleness":      {func(c *Config) { c.StaleAfter = -time.Second }, "stale_after"},
		"no number":               {func(c *Config) { c.IdleThreshold = math.NaN() }, "idle_threshold"},
		"percent":                 {func(c *Config) { c.PartialThreshold = 25 }, "partial_threshold"},
		"grafana":                 {func(c *Config) { c.Grafana.URL = "https://g.example.com/grafana/" }, ""},
		"grafana's script":        {func(c *Config) { c.Grafana.URL = "javascript:alert(1)" }, "grafana::url"},
		"grafana's password":      {func(c *Config) { c.Grafana.URL = "https://u:p@g.example.com" }, "credentials"},
		"grafana's query":         {func(c *Config) { c.Grafana.URL = "https://g.example.com/?a=b" }, "grafana::url"},
		"grafana's dashboard":     {func(c *Config) { c.Grafana.URL, c.Grafana.Dashboard = "https://g.example.com", "a/b" }, "grafana::dashboard"},
		"variable's name": {func(c *Config) {
			c.Grafana = GrafanaConfig{URL: "https://g.example.com", Dashboard: "a", Variables: map[string]string{"a-b": "service"}}
		}, "letters, digits and _"},
		"variable's value": {func(c *Config) {
			c.Grafana = GrafanaConfig{URL: "https://g.example.com", Dashboard: "a", Variables: map[string]string{"a": "pod"}}
		}, "cluster, namespace or service"},
	} {
		t.Run(name, func(t *testing.T) {
			c := createDefaultConfig().(*Config)
			test.change(c)
			err := c.Validate()
			if test.want == "" {
				assert.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.Contains(t, err.Error(), test.want)
			assert.NotContains(t, err.Error(), "u:p@")
		})
	}
}
