// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gaudireceiver

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape"
)

// Config of the gaudi receiver.
type Config struct {
	scrape.Config `mapstructure:",squash"`
}

// The exporter reads its devices for each request, of which it answers one in 5 s.
func createDefaultConfig() component.Config {
	return &Config{scrape.Defaults(30*time.Second, 5*time.Second)}
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a
// duration without a unit stop the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate reports every problem with its key and remedy.
func (c *Config) Validate() error { return c.Check(&exporter) }
