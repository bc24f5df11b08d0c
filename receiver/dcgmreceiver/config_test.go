// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/metadata"
)

func load(t *testing.T, name string) *Config {
	t.Helper()
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	sub, err := conf.Sub(component.NewIDWithName(metadata.Type, name).String())
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, sub.Unmarshal(cfg))
	return cfg
}

func TestLoadConfig(t *testing.T) {
	defaults := createDefaultConfig().(*Config)
	defaults.Endpoints = []string{"http://localhost:9400/metrics"}
	kubernetes := createDefaultConfig().(*Config)
	kubernetes.Kubernetes = &scrape.KubernetesConfig{
		NodeName: "node-a", Namespaces: []string{"gpu-operator"}, LabelSelector: "app=my-exporter", Port: 9401,
		KubeconfigFile: "testdata/kubeconfig.yaml",
	}
	for name, want := range map[string]*Config{
		"": defaults,
		"all": {Config: scrape.Config{
			Endpoints:          []string{"https://node-a:9400/metrics?collect=gpu", "http://node-b:9400/metrics"},
			CollectionInterval: 30 * time.Second,
			Names:              scrape.NamesBoth,
			Unmapped:           scrape.UnmappedDrop,
			FrozenAfter:        3,
			ExporterInterval:   10 * time.Second,
			NodeName:           "node-a",
			ClusterName:        "prod",
			MaxLabels:          64,
			MaxLabelBytes:      1024,
			Scrape: scrape.PrometheusConfig{
				"scrape_timeout":  "5s",
				"body_size_limit": "4MB",
				"tls_config":      map[string]any{"ca_file": "testdata/ca.pem", "insecure_skip_verify": true},
				"basic_auth":      map[string]any{"username": "scraper", "password": configopaque.String("hunter2")},
			},
		}},
		"kubernetes": kubernetes,
	} {
		t.Run("dcgm/"+name, func(t *testing.T) {
			cfg := load(t, name)
			assert.Equal(t, want, cfg)
			assert.NoError(t, cfg.Validate())
		})
	}
}

func TestValidate(t *testing.T) {
	endpoint := func(e ...string) func(*Config) { return func(c *Config) { c.Endpoints = e } }
	keys := func(key string, v any) func(*Config) {
		return func(c *Config) { c.Scrape = scrape.PrometheusConfig{key: v} }
	}
	for name, tt := range map[string]struct {
		change func(*Config)
		want   []string // key and remedy
	}{
		"neither":           {endpoint(), []string{"endpoints:", "kubernetes::node_name"}},
		"both":              {func(c *Config) { c.Kubernetes = &scrape.KubernetesConfig{NodeName: "a"} }, []string{"endpoints:", "keep one"}},
		"no URL":            {endpoint("http://a b"), []string{"endpoints::0:", "http://host:9400/metrics"}},
		"no scheme":         {endpoint("localhost:9400"), []string{"endpoints::0:", "scheme"}},
		"empty":             {endpoint(""), []string{"endpoints::0: is empty", "DCGM_EXPORTER_ENDPOINT"}},
		"no host":           {endpoint("http:///metrics"), []string{"endpoints::0:", "host"}},
		"password":          {endpoint("http://u:hunter2@a:9400/metrics"), []string{"endpoints::0:", "scrape::basic_auth"}},
		"password, no URL":  {endpoint("http://u:hunter2@a:x/metrics"), []string{"endpoints::0:"}},
		"fragment":          {endpoint("http://a:9400/metrics#x"), []string{"endpoints::0:", "remove it"}},
		"twice":             {endpoint("http://a:9400", "http://a:9400"), []string{"endpoints::1:", "remove it"}},
		"twice, no path":    {endpoint("http://a:9400/metrics", "http://A:9400"), []string{"endpoints::1:", "remove it"}},
		"twice, no port":    {endpoint("http://a/metrics?x=1", "http://a:80?x=1"), []string{"endpoints::1:", "remove it"}},
		"too often":         {func(c *Config) { c.CollectionInterval = time.Millisecond }, []string{"collection_interval:", "1s to 5m"}},
		"too seldom":        {func(c *Config) { c.CollectionInterval = time.Hour }, []string{"collection_interval:", "1s to 5m"}},
		"names":             {func(c *Config) { c.Names = "nvidia" }, []string{"names:", "otel, dcgm or both"}},
		"unmapped":          {func(c *Config) { c.Unmapped = "maybe" }, []string{"unmapped:", "keep or drop"}},
		"max_labels":        {func(c *Config) { c.MaxLabels = 0 }, []string{"max_labels: is 0: use 32 or more"}},
		"max_label_bytes":   {func(c *Config) { c.MaxLabelBytes = -1 }, []string{"max_label_bytes: is -1: use 256 or more"}},
		"frozen_after":      {func(c *Config) { c.FrozenAfter = 1 }, []string{"frozen_after:", "2 or more"}},
		"exporter_interval": {func(c *Config) { c.ExporterInterval = 0 }, []string{"exporter_interval:", "--collect-interval"}},
		"node_name":         {func(c *Config) { c.Endpoints, c.Kubernetes = nil, &scrape.KubernetesConfig{} }, []string{"kubernetes::node_name:", "spec.nodeName"}},
		"port":              {func(c *Config) { c.Endpoints, c.Kubernetes = nil, &scrape.KubernetesConfig{NodeName: "a", Port: 70000} }, []string{"kubernetes::port:", "1 to 65535"}},
		"label_selector": {func(c *Config) {
			c.Endpoints, c.Kubernetes = nil, &scrape.KubernetesConfig{NodeName: "a", LabelSelector: "a in"}
		}, []string{"scrape:"}},
		"kubeconfig_file": {func(c *Config) {
			c.Endpoints, c.Kubernetes = nil, &scrape.KubernetesConfig{NodeName: "a", KubeconfigFile: "none.yaml"}
		}, []string{"kubernetes::kubeconfig_file:", "none.yaml", "service account"}},
		"own key":            {keys("scrape_interval", "1m"), []string{"scrape::scrape_interval:", "collection_interval"}},
		"own discovery":      {keys("consul_sd_configs", []any{}), []string{"scrape::consul_sd_configs:", "use endpoints or kubernetes"}},
		"part of endpoint":   {keys("metrics_path", "/m"), []string{"scrape::metrics_path:", "endpoints"}},
		"unknown key":        {keys("body_size", "1MB"), []string{"scrape:", "body_size"}},
		"long timeout":       {keys("scrape_timeout", "1m"), []string{"scrape:", "timeout"}},
		"no such file":       {keys("tls_config", map[string]any{"cert_file": "none.pem", "key_file": "none.pem"}), []string{"scrape:", "none.pem"}},
		"password, odd key":  {keys("basic_auth", "hunter2"), []string{"scrape:"}},
		"password of proxy":  {keys("proxy_url", "http://u:hunter2@proxy"), []string{"scrape::proxy_url:", "proxy_connect_header"}},
		"password, bad list": {keys("basic_auth", map[string]any{"username": "u", "password": []string{"hunter2"}}), []string{"scrape:"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.Endpoints = []string{"http://localhost:9400/metrics"}
			tt.change(cfg)
			err := cfg.Validate()
			require.Error(t, err)
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
}

// TestSecrets: a printed configuration shows none.
func TestSecrets(t *testing.T) {
	secrets := map[string]any{
		"basic_auth":           map[string]any{"username": "scraper", "password": "hunter2"},
		"authorization":        map[string]any{"credentials": "hunter2"},
		"oauth2":               map[string]any{"client_id": "me", "client_secret": "hunter2", "tls_config": map[string]any{"key": "hunter2"}},
		"tls_config":           map[string]any{"key": "hunter2", "ca_file": "ca.pem"},
		"http_headers":         map[string]any{"X-Key": map[string]any{"secrets": []any{"hunter2"}}},
		"proxy_url":            "http://u:hunter2@proxy",
		"proxy_connect_header": map[string]any{"Proxy-Authorization": []any{"hunter2"}},
		"bearer_token":         "hunter2",
	}
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"endpoints": []any{"http://a"}, "scrape": secrets,
	}).Unmarshal(cfg))
	conf := confmap.New()
	require.NoError(t, conf.Marshal(cfg))
	for _, text := range []string{fmt.Sprint(conf.ToStringMap()), fmt.Sprintf("%+v", cfg.Scrape)} {
		assert.NotContains(t, text, "hunter2")
		for _, want := range []string{"scraper", "ca.pem", "client_id:me", "[REDACTED]"} {
			assert.Contains(t, text, want)
		}
	}
	assert.Equal(t, secrets, cfg.Scrape.Revealed(), "the configuration itself keeps them")
}

// TestDefaults: what Prometheus is given where the configuration is empty.
func TestDefaults(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Endpoints = []string{"http://a", "https://b:9400/x?collect=gpu"}
	prom, err := cfg.Prometheus(&exporter)
	require.NoError(t, err)
	require.Len(t, prom.ScrapeConfigs, 2)
	for i, want := range []string{"http /metrics map[]", "https /x map[collect:[gpu]]"} {
		job := prom.ScrapeConfigs[i]
		assert.Equal(t, want, fmt.Sprint(job.Scheme, " ", job.MetricsPath, " ", map[string][]string(job.Params)))
		assert.EqualValues(t, 16<<20, job.BodySizeLimit)
		assert.Equal(t, "15s", job.ScrapeInterval.String())
		assert.Equal(t, "10s", job.ScrapeTimeout.String())
		assert.False(t, job.HonorLabels)
		assert.False(t, job.HonorTimestamps)
	}
}
