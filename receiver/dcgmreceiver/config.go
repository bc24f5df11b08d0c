// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape"
)

// NamesDCGM emits the exporter's own families, values and labels.
const NamesDCGM scrape.Names = "dcgm"

// Config of the dcgm receiver.
type Config struct {
	scrape.Config `mapstructure:",squash"`
}

func createDefaultConfig() component.Config {
	// dcgm-exporter --collect-interval is 30 s.
	return &Config{scrape.Defaults(15*time.Second, 30*time.Second)}
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a
// duration without a unit stop the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate reports every problem with its key and remedy.
func (c *Config) Validate() error { return c.Check(&exporter) }
