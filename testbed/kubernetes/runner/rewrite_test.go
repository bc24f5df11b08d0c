// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRewrite(t *testing.T) {
	r := &Runner{addresses: newAddresses()}
	gateway := r.addresses.service("gpu", "gateway")
	in := Inside{Address: "127.70.0.1", Loopback: "127.134.0.1", Mounts: map[string]string{
		"/etc/app": "/tmp/config", "/etc/app/tls": "/tmp/tls", "/var/lib/app": "/tmp/state",
	}}
	for text, want := range map[string]string{
		"/etc/app/a.yaml":                       "/tmp/config/a.yaml",
		"--config=file:/etc/app/a.yaml":         "--config=file:/tmp/config/a.yaml",
		"{ca: /etc/app/tls/ca.crt}":             "{ca: /tmp/tls/ca.crt}",
		"/etc/app":                              "/tmp/config",
		"/etc/apple /my/etc/app /etc/app-b/x":   "/etc/apple /my/etc/app /etc/app-b/x",
		"${env:STATE:-/var/lib/app}/store":      "${env:STATE:-/tmp/state}/store",
		"localhost:8480":                        "127.134.0.1:8480",
		"http://127.0.0.1:9090/":                "http://127.134.0.1:9090/",
		"localhosts":                            "localhosts",
		"0.0.0.0:4317 and [::]:4318":            "127.70.0.1:4317 and 127.70.0.1:4318",
		"gateway.gpu.svc:4317":                  gateway + ":4317",
		"https://gateway.gpu.svc:4318/v1/x":     "https://" + gateway + ":4318/v1/x",
		"gateway.gpu.svc.cluster.local:4317":    gateway + ":4317",
		"server_name_override: gateway.gpu.svc": "server_name_override: gateway.gpu.svc",
	} {
		assert.Equal(t, want, r.rewrite(text, in), text)
	}
}

func TestExpand(t *testing.T) {
	values := map[string]string{"A": "1", "B": ""}
	for text, want := range map[string]string{
		"$(A)-$(B)-$(C)": "1--$(C)", "$$(A)": "$(A)", "$(A": "$(A", "no": "no", "": "", "$(": "$(",
	} {
		assert.Equal(t, want, expand(text, values), text)
	}
}
