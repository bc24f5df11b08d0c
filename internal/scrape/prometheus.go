// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	commonconfig "github.com/prometheus/common/config"
	promconfig "github.com/prometheus/prometheus/config"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v2"

	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

// PrometheusConfig holds keys of a Prometheus scrape_config as they were written:
// tls_config, basic_auth, authorization, oauth2, proxy_url, scrape_timeout,
// body_size_limit and others. Prometheus' own loader checks them.
type PrometheusConfig map[string]any

// ownedKeys are set by the receiver; the text states which key of ours does it.
var ownedKeys = map[string]string{
	"job_name":                 "the receiver's own name is used",
	"scrape_interval":          "use collection_interval",
	"static_configs":           "use endpoints",
	"kubernetes_sd_configs":    "use kubernetes",
	"honor_labels":             "labels of the exporter are always kept",
	"honor_timestamps":         "the time of the scrape is always used",
	"scrape_protocols":         "the text format is always used",
	"fallback_scrape_protocol": "the text format is always used",
	"relabel_configs":          "use endpoints or kubernetes",
}

// endpointKeys are parts of an endpoint, and keys of scrape with kubernetes.
var endpointKeys = []string{"scheme", "metrics_path", "params"}

var _ confmap.Unmarshaler = (*PrometheusConfig)(nil)

// Unmarshal implements confmap.Unmarshaler. Secrets become configopaque.String, so
// that a printed configuration shows none.
func (s *PrometheusConfig) Unmarshal(conf *confmap.Conf) error {
	*s = each(conf.ToStringMap(), conceal)
	return nil
}

// conceal hides what Prometheus holds as a secret (config.Secret and
// config.ProxyHeader of prometheus/common) and whatever may hold a password.
func conceal(key, v string) any {
	switch key {
	case "password", "credentials", "client_secret", "client_certificate_key", "bearer_token", "key",
		"secrets", "proxy_connect_header", "proxy_url":
		return configopaque.String(v)
	}
	return v
}

// each copies a configuration with f applied to its strings. Strings in a list
// and below proxy_connect_header have the key that they belong to.
func each(m map[string]any, f func(key, v string) any) map[string]any {
	var value func(key string, v any) any
	value = func(key string, v any) any {
		switch v := v.(type) {
		case map[string]any:
			out := make(map[string]any, len(v))
			for k, nested := range v {
				of := k
				if key == "proxy_connect_header" { // its keys are names of headers
					of = key
				}
				out[k] = value(of, nested)
			}
			return out
		case []any:
			out := make([]any, len(v))
			for i := range v {
				out[i] = value(key, v[i])
			}
			return out
		case string:
			return f(key, v)
		case configopaque.String:
			return f(key, string(v))
		default:
			return v
		}
	}
	return value("", m).(map[string]any)
}

// Revealed are the keys with their secrets.
func (s PrometheusConfig) Revealed() map[string]any {
	return each(s, func(_, v string) any { return v })
}

// quoted are the values that a YAML error quotes: one may be a password that was
// written under the wrong key.
var quoted = regexp.MustCompile("`[^`]*`")

func refused(err error) error {
	return fmt.Errorf("scrape: prometheus refuses a key: %s", quoted.ReplaceAllString(err.Error(), "`…`"))
}

// Prometheus is what the configuration is to Prometheus: a scrape_config an
// endpoint, which differ in nothing but the endpoint, or one for Kubernetes.
func (c *Config) Prometheus(e *Exporter) (*promconfig.Config, error) {
	for _, key := range slices.Sorted(maps.Keys(c.Scrape)) {
		if remedy, owned := ownedKeys[key]; owned || strings.HasSuffix(key, "_sd_configs") {
			if remedy == "" {
				remedy = "use endpoints or kubernetes"
			}
			return nil, fmt.Errorf("scrape::%s: is set by the receiver: %s", key, remedy)
		}
		if len(c.Endpoints) > 0 && slices.Contains(endpointKeys, key) {
			return nil, fmt.Errorf("scrape::%s: is part of an endpoint: write it into endpoints (https://host:9400/metrics?collect=gpu)", key)
		}
	}
	scrape := c.Scrape.Revealed()
	proxyURL, _ := scrape["proxy_url"].(string)
	if u, err := url.Parse(proxyURL); err == nil && u.User != nil {
		// Prometheus' types print it without.
		return nil, errors.New("scrape::proxy_url: has a user or password in it, which would be lost: use scrape::proxy_connect_header (Proxy-Authorization)")
	}
	// Prometheus wants one job for each path and scheme.
	var jobs []map[string]any
	if c.Kubernetes != nil {
		jobs = append(jobs, job(e.Type, c.CollectionInterval, scrape, c.Kubernetes.discovery(e)))
	}
	for i, endpoint := range c.Endpoints {
		jobs = append(jobs, job(fmt.Sprintf("%s-%d", e.Type, i), c.CollectionInterval, scrape, static(endpoint)))
	}
	if e.Local != nil { // for the keys about pages
		jobs = append(jobs, job(e.Type, c.CollectionInterval, scrape, static("http://localhost")))
	}
	text, err := yaml.Marshal(map[string]any{"scrape_configs": jobs})
	if err != nil {
		return nil, fmt.Errorf("scrape: %w", err)
	}
	cfg, err := promconfig.Load(string(text), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, refused(err)
	}
	for _, job := range cfg.ScrapeConfigs {
		if err := c.checkCredentials(e, &job.HTTPClientConfig); err != nil {
			return nil, err
		}
		if err := checkFiles(&job.HTTPClientConfig); err != nil {
			return nil, err
		}
	}
	return cfg, nil
}

// checkFiles finds out at the start what would fail every scrape.
func checkFiles(c *commonconfig.HTTPClientConfig) error {
	files := map[string]string{
		"tls_config::cert_file": c.TLSConfig.CertFile,
		"tls_config::key_file":  c.TLSConfig.KeyFile,
	}
	if c.Authorization != nil {
		files["authorization::credentials_file"] = c.Authorization.CredentialsFile
	}
	for _, key := range slices.Sorted(maps.Keys(files)) {
		if files[key] == "" {
			continue
		}
		if _, err := os.Stat(files[key]); err != nil {
			return fmt.Errorf("scrape::%s: %w: correct the path", key, err)
		}
	}
	return nil
}

// job is one scrape_config: the user's keys, and over them those that are ours.
func job(name string, interval time.Duration, scrape, discovery map[string]any) map[string]any {
	job := map[string]any{
		"body_size_limit": fetch.DefaultBodySizeLimit,
		"scrape_timeout":  min(interval, 10*time.Second).String(),
	}
	maps.Copy(job, scrape)
	maps.Copy(job, discovery)
	maps.Copy(job, map[string]any{
		"job_name":        name,
		"scrape_interval": interval.String(),
		// With labels of its own on no target, Prometheus renames nothing of the
		// exporter's but job and instance, which name the target here.
		"honor_labels": false,
		// A page's own timestamps could lie in the past for ever.
		"honor_timestamps":         false,
		"scrape_protocols":         []string{"PrometheusText0.0.4"},
		"fallback_scrape_protocol": "PrometheusText0.0.4",
	})
	return job
}

func static(endpoint string) map[string]any {
	u, err := url.Parse(endpoint)
	if err != nil { // Validate has refused it
		u = &url.URL{}
	}
	job := map[string]any{
		"scheme":         u.Scheme,
		"metrics_path":   fetch.PagePath(u),
		"static_configs": []any{map[string]any{"targets": []string{u.Host}}},
	}
	if len(u.Query()) > 0 {
		job["params"] = map[string][]string(u.Query())
	}
	return job
}
