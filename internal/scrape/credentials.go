// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"errors"
	"fmt"
	"slices"

	commonconfig "github.com/prometheus/common/config"
)

// checkCredentials refuses credentials that would go to strangers. Discovery
// knows an exporter by its labels, and everyone who can create a pod can give it those.
func (c *Config) checkCredentials(e *Exporter, client *commonconfig.HTTPClientConfig) error {
	if c.Kubernetes == nil || c.Kubernetes.limited() {
		return nil
	}
	var errs []error
	for _, key := range c.credentials(client) {
		errs = append(errs, fmt.Errorf("scrape::%s: would go to every pod of the node that calls itself %s, in any namespace: "+
			"name the exporter's own namespace in kubernetes::namespaces, or use endpoints", key, e.Program))
	}
	return errors.Join(errs...)
}

// limited reports whether not all namespaces are searched. An empty one means all
// to the API server.
func (k *KubernetesConfig) limited() bool {
	return len(k.Namespaces) > 0 && !slices.Contains(k.Namespaces, "")
}

// credentials are the keys of scrape that authenticate the receiver.
func (c *Config) credentials(client *commonconfig.HTTPClientConfig) []string {
	var keys []string
	add := func(is bool, key string) {
		if is {
			keys = append(keys, key)
		}
	}
	add(client.BasicAuth != nil, "basic_auth")
	if client.Authorization != nil { // which Prometheus' loader also makes of bearer_token
		key := "authorization"
		for _, old := range [...]string{"bearer_token", "bearer_token_file"} {
			if c.Scrape[old] != nil {
				key = old
			}
		}
		add(true, key)
	}
	add(client.OAuth2 != nil, "oauth2")
	tls := &client.TLSConfig
	add(tls.Cert != "" || tls.CertFile != "" || tls.CertRef != "", "tls_config (a client certificate)")
	if client.HTTPHeaders != nil {
		for name, h := range client.HTTPHeaders.Headers {
			add(len(h.Secrets) > 0 || len(h.Files) > 0, "http_headers::"+name)
		}
	}
	slices.Sort(keys)
	return keys
}
