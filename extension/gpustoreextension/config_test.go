// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreextension

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"
)

// parse reads a configuration as the Collector does.
func parse(t *testing.T, text string) (*Config, error) {
	t.Helper()
	values := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &values))
	c := createDefaultConfig().(*Config)
	if err := confmap.NewFromStringMap(values).Unmarshal(c); err != nil {
		return nil, err
	}
	return c, confmap.Validate(c)
}

func TestConfigurationsThatWork(t *testing.T) {
	c, err := parse(t, `{}`)
	require.NoError(t, err)
	assert.Equal(t, 24*time.Hour, c.Retention)
	assert.Equal(t, "localhost:9090", c.API.NetAddr.Endpoint)
	assert.Equal(t, 5*time.Minute, c.lookback())

	c, err = parse(t, `{directory: x, retention: 1h, max_bytes: 1000000000, out_of_order_window: 0s, max_interval: 5m, api: {endpoint: ""}}`)
	require.NoError(t, err)
	assert.Equal(t, 12*time.Minute+30*time.Second, c.lookback())

	for _, text := range []string{
		`{api: {endpoint: "127.0.0.1:9090"}}`, `{api: {endpoint: "[::1]:9090"}}`, `{api: {endpoint: "LOCALHOST:0"}}`, `{api: {endpoint: "127.8.8.8:0"}}`,
		`{api: {endpoint: "0.0.0.0:9090", auth: {authenticator: bearertokenauth}}}`, `{api: {endpoint: /run/store.sock, transport: unix}}`,
		`{max_interval: 5m, lookback: 13m}`,
		`{engine: prometheus, prometheus: {url: "http://prometheus:9090"}}`,
		`{engine: prometheus, prometheus: {url: "https://mimir/prometheus", headers: {X-Scope-OrgID: gpu}, auth: {authenticator: basicauth}, tls: {insecure_skip_verify: true}}}`,
	} {
		_, err := parse(t, text)
		assert.NoError(t, err, text)
	}
}

// A configuration that cannot work is refused with its key and the remedy.
func TestConfigurationsThatCannotWork(t *testing.T) {
	for text, reports := range map[string][]string{
		`{engine: influx}`:                                                 {"engine:", "embedded", "prometheus"},
		`{directory: " "}`:                                                 {"directory:", "/var/lib"},
		`{retention: 1m}`:                                                  {"retention:", "15m"},
		`{retention: 30d}`:                                                 {"retention:", `"30d"`, "720h"},
		`{api: {endpoint: "localhost:84800"}}`:                             {"api::endpoint:", "84800", "65535"},
		`{retention: -1h}`:                                                 {"retention:"},
		`{max_bytes: 0}`:                                                   {"max_bytes:"},
		`{out_of_order_window: 25h}`:                                       {"out_of_order_window:", "24h"},
		`{out_of_order_window: -1s}`:                                       {"out_of_order_window:"},
		`{max_interval: 0s}`:                                               {"max_interval:"},
		`{max_interval: 5m, lookback: 5m}`:                                 {"lookback:", "12m30s", "gaps"},
		`{max_series: 0}`:                                                  {"max_series:"},
		`{query: {timeout: 0s}}`:                                           {"query::timeout:"},
		`{query: {max_concurrent: 0}}`:                                     {"query::max_concurrent:"},
		`{query: {max_samples: 1}}`:                                        {"query::max_samples:"},
		`{log: {max_events: 0}}`:                                           {"log::max_events:"},
		`{log: {max_deliveries: -1}}`:                                      {"log::max_deliveries:"},
		`{log: {max_usage_bytes: 1}}`:                                      {"log::max_usage_bytes:"},
		`{log: {usage_hours: 1h}}`:                                         {"log::usage_hours:"},
		`{log: {usage_days: 800h}}`:                                        {"log::usage_days: 800h0m0s is not within 840h0m0s"},
		`{log: {usage_days: 400}}`:                                         {"usage_days"},
		`{log: {max_bytes: 1}}`:                                            {"log::max_bytes:"},
		`{api: {endpoint: "0.0.0.0:9090"}}`:                                {"api::endpoint:", "api::auth", "localhost"},
		`{api: {endpoint: ":9090"}}`:                                       {"api::endpoint:", "api::auth"},
		`{api: {endpoint: "gateway:9090"}}`:                                {"api::endpoint:", "api::auth"},
		`{api: {endpoint: "localhost.evil.com:9090"}}`:                     {"api::endpoint:", "api::auth"},
		`{api: {endpoint: "9090"}}`:                                        {"api::endpoint:", "localhost:9090"},
		`{prometheus: {url: "http://p:9090"}}`:                             {"prometheus::url:", "engine: prometheus"},
		`{engine: prometheus}`:                                             {"prometheus::url:", "http://prometheus:9090"},
		`{engine: prometheus, prometheus: {url: "p:9090"}}`:                {"prometheus::url:", "http://"},
		`{engine: prometheus, prometheus: {url: "http://u:secret@p"}}`:     {"prometheus::url:", "prometheus::auth"},
		`{engine: prometheus, prometheus: {url: "http://p?token=secret"}}`: {"prometheus::url:", "/api/v1"},
		`{engine: prometheus, prometheus: {url: "http://secret\u007f"}}`:   {"prometheus::url:"},
		`{engine: prometheus, prometheus: {endpoint: "http://p"}}`:         {"prometheus::endpoint:", "url"},
		`{engine: prometheus, prometheus: {url: "http://p", max_response_bytes: 0}}`: {"prometheus::max_response_bytes:"},
		`{api: {listen: x}}`: {"listen"},
		`{retension: 1h}`:    {"retension"},
	} {
		_, err := parse(t, text)
		if !assert.Error(t, err, text) {
			continue
		}
		for _, s := range reports {
			assert.ErrorContains(t, err, s, text)
		}
		assert.False(t, strings.Contains(err.Error(), "secret"), "%s: %v", text, err)
	}
}

// A value that is wrong is one error, and not also one of what follows from it.
func TestOneMistakeIsOneError(t *testing.T) {
	for _, text := range []string{`{retention: 24}`, `{retention: 24ns}`, `{retention: 5m}`} {
		_, err := parse(t, text)
		require.ErrorContains(t, err, "retention:")
		assert.NotContains(t, err.Error(), "out_of_order_window")
	}
}
