// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amdgpureceiver

import (
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/amdgpureceiver/internal/amd"
)

// Config of the amd_gpu receiver.
type Config struct {
	scrape.Config `mapstructure:",squash"`
	SourceConfig  `mapstructure:",squash"`
}

func createDefaultConfig() component.Config {
	// The exporter caches its readings for 15 s.
	return &Config{Config: scrape.Defaults(15*time.Second, 15*time.Second), SourceConfig: defaultSource()}
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a
// duration without a unit stop the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate reports every problem with its key and remedy.
func (c *Config) Validate() error {
	return errors.Join(c.SourceConfig.check(&c.Config), c.Check(c.exporter(amd.NewVendor(nil))))
}
