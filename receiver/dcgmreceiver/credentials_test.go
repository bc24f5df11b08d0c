// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape"
)

// TestCredentials: credentials of the receiver are sent to exporters that an
// endpoint names, or to those of namespaces that are named.
func TestCredentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hunter2")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	header := func(kind, value string) map[string]any {
		return map[string]any{"X-Key": map[string]any{kind: []any{value}}}
	}
	for name, tt := range map[string]struct {
		scrape  scrape.PrometheusConfig
		refused string // key
	}{
		"nothing":                {nil, ""},
		"basic_auth":             {scrape.PrometheusConfig{"basic_auth": map[string]any{"username": "u", "password": "hunter2"}}, "scrape::basic_auth:"},
		"password_file":          {scrape.PrometheusConfig{"basic_auth": map[string]any{"username": "u", "password_file": file}}, "scrape::basic_auth:"},
		"basic_auth, taken back": {scrape.PrometheusConfig{"basic_auth": nil}, ""},
		"authorization":          {scrape.PrometheusConfig{"authorization": map[string]any{"credentials": "hunter2"}}, "scrape::authorization:"},
		"credentials_file":       {scrape.PrometheusConfig{"authorization": map[string]any{"credentials_file": file}}, "scrape::authorization:"},
		"bearer_token":           {scrape.PrometheusConfig{"bearer_token": "hunter2"}, "scrape::bearer_token:"},
		"bearer_token_file":      {scrape.PrometheusConfig{"bearer_token_file": file}, "scrape::bearer_token_file:"},
		"oauth2": {scrape.PrometheusConfig{"oauth2": map[string]any{
			"client_id": "me", "client_secret": "hunter2", "token_url": "http://a/token",
		}}, "scrape::oauth2:"},
		"client certificate": {scrape.PrometheusConfig{"tls_config": map[string]any{"cert_file": file, "key_file": file}}, "scrape::tls_config"},
		"another authority":  {scrape.PrometheusConfig{"tls_config": map[string]any{"ca_file": file, "server_name": "a"}}, ""},
		"secret header":      {scrape.PrometheusConfig{"http_headers": header("secrets", "hunter2")}, "scrape::http_headers::X-Key:"},
		"header of a file":   {scrape.PrometheusConfig{"http_headers": header("files", file)}, "scrape::http_headers::X-Key:"},
		"open header":        {scrape.PrometheusConfig{"http_headers": header("values", "a")}, ""},
		"for the proxy": {scrape.PrometheusConfig{
			"proxy_url": "http://proxy", "proxy_connect_header": map[string]any{"Proxy-Authorization": []any{"hunter2"}},
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for search, namespaces := range map[string][]string{"all": nil, "all, unset": {""}, "all, by one": {"gpu-operator", ""}} {
				cfg := createDefaultConfig().(*Config)
				cfg.Kubernetes, cfg.Scrape = &scrape.KubernetesConfig{NodeName: "a", LabelSelector: "app=mine", Namespaces: namespaces}, tt.scrape
				err := cfg.Validate()
				if tt.refused == "" {
					assert.NoError(t, err, search)
					continue
				}
				require.Error(t, err, search)
				for _, want := range []string{tt.refused, "kubernetes::namespaces", "endpoints"} {
					assert.ErrorContains(t, err, want, search)
				}
				assert.NotContains(t, err.Error(), "hunter2")
			}
			cfg := createDefaultConfig().(*Config)
			cfg.Kubernetes, cfg.Scrape = &scrape.KubernetesConfig{NodeName: "a", Namespaces: []string{"gpu-operator"}}, tt.scrape
			assert.NoError(t, cfg.Validate(), "in one namespace")
			cfg.Kubernetes, cfg.Endpoints = nil, []string{"http://a"}
			assert.NoError(t, cfg.Validate(), "an endpoint")
		})
	}
}
