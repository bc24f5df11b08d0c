// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/signing"
)

const (
	firstKey  = "whsec_C+0sZ3Jb9I5PGrXwVz3oD7xkKqMuYt1RZcNa0pQeSgU="
	secondKey = "whsec_v2h1PpRf8cXq4LwT9zKsYdN0eUaJ6gBiOmQ3nV5xW7k="
)

func TestFingerprintDistinguishesSecrets(t *testing.T) {
	base := Config{URL: "https://hooks.example.com/a", Signing: signing.Config{Standard: []configopaque.String{firstKey}}}
	same := Config{URL: "https://hooks.example.com/a", Signing: signing.Config{Standard: []configopaque.String{firstKey}}}
	assert.Equal(t, fingerprintOf(base), fingerprintOf(same))
	seen := map[string]string{fingerprintOf(base): "base"}
	for name, change := range map[string]func(*Config){
		"url":      func(c *Config) { c.URL = "https://hooks.example.com/b" },
		"key":      func(c *Config) { c.Signing.Standard = []configopaque.String{secondKey} },
		"more":     func(c *Config) { c.Signing.Standard = append(c.Signing.Standard, secondKey) },
		"kind":     func(c *Config) { c.Signing = signing.Config{Convox: c.Signing.Standard} },
		"timeout":  func(c *Config) { c.Timeout = time.Second },
		"events":   func(c *Config) { c.Events = []string{"ab"} },
		"events2":  func(c *Config) { c.Events = []string{"a", "b"} },
		"severity": func(c *Config) { c.MinSeverity = "warn" },
		"queue":    func(c *Config) { c.QueueSize = 5 },
		"workers":  func(c *Config) { c.Workers = 5 },
		"format":   func(c *Config) { c.Format = "convox" },
	} {
		cfg := base
		change(&cfg)
		print := fingerprintOf(cfg)
		assert.NotContains(t, seen, print, "%s is like %s", name, seen[print])
		seen[print] = name
		assert.NotContains(t, print, "hooks")
	}
}
