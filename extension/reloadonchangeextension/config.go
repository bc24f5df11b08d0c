// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package reloadonchangeextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/reloadonchangeextension"

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
)

// Config is the configuration of the reload_on_change extension.
type Config struct {
	// Files are looked at. One that does not exist counts as empty.
	Files []string `mapstructure:"files"`
	// Interval is the time between two looks.
	Interval time.Duration `mapstructure:"interval"`
}

func createDefaultConfig() component.Config { return &Config{Interval: time.Minute} }

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a
// duration without a unit stop the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate reports every key that cannot be used, with its remedy.
func (c *Config) Validate() error {
	var errs []error
	if len(c.Files) == 0 {
		errs = append(errs, errors.New("files: is empty: name the files that components read at their start, or take the extension out"))
	}
	for i, file := range c.Files {
		if file == "" {
			errs = append(errs, fmt.Errorf("files::%d: is empty: name a file or take the entry out", i))
		}
	}
	if c.Interval < time.Second {
		errs = append(errs, fmt.Errorf("interval: %v is too short; at least 1s", c.Interval))
	}
	return errors.Join(errs...)
}
