// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package besteffortconnector

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
)

const (
	defaultTimeout     = time.Second
	longestTimeout     = 10 * time.Second
	defaultMaxInFlight = 8
	mostInFlight       = 1024
)

// Config of the best_effort connector.
type Config struct {
	// Timeout is how long a pipeline is waited for. A call that takes longer goes
	// on in the background.
	Timeout time.Duration `mapstructure:"timeout"`
	// MaxInFlight is how many batches a pipeline may have at once that it has not
	// returned from. While all of them are in the background, others are dropped.
	MaxInFlight int `mapstructure:"max_in_flight"`
}

func createDefaultConfig() component.Config {
	return &Config{Timeout: defaultTimeout, MaxInFlight: defaultMaxInFlight}
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a
// duration without a unit stop the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate reports every key that cannot be used, with its remedy.
func (c *Config) Validate() error {
	var errs []error
	if c.Timeout <= 0 || c.Timeout > longestTimeout {
		errs = append(errs, fmt.Errorf("timeout: %s: set it above 0 and to %s at most, since it holds what must go on; the default is %s", c.Timeout, longestTimeout, defaultTimeout))
	}
	if c.MaxInFlight < 1 || c.MaxInFlight > mostInFlight {
		errs = append(errs, fmt.Errorf("max_in_flight: %d: set it from 1 to %d, each holds a batch in memory; the default is %d", c.MaxInFlight, mostInFlight, defaultMaxInFlight))
	}
	return errors.Join(errs...)
}
