// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package footprintextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/footprintextension"

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
)

// shortest is the shortest time between two times that pages are given back: each
// costs a garbage collection, and some hundred page faults afterwards.
const shortest = time.Minute

// Config is the configuration of the footprint extension.
type Config struct {
	// Delay is how long after the start memory is given back for the first time.
	Delay time.Duration `mapstructure:"delay"`
	// Interval is the time between that and the next.
	Interval time.Duration `mapstructure:"interval"`
}

func createDefaultConfig() component.Config {
	return &Config{Delay: 30 * time.Second, Interval: 5 * time.Minute}
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a
// duration without a unit stop the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate returns what is wrong, by key.
func (c *Config) Validate() error {
	var errs []error
	if c.Delay < time.Second {
		errs = append(errs, fmt.Errorf("delay: %v is too short; at least 1s, since before that the start is not over", c.Delay))
	}
	if c.Interval < shortest {
		errs = append(errs, fmt.Errorf("interval: %v is too short; at least %v", c.Interval, shortest))
	}
	return errors.Join(errs...)
}
