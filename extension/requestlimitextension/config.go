// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package requestlimitextension

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
)

const mostRequests = 100_000

// Config of the request_limit extension.
type Config struct {
	// MaxRequests is how many requests all servers that name this extension work on
	// at once.
	MaxRequests int `mapstructure:"max_requests"`
	// MaxRequestsPerPeer is how many of them are from one address.
	MaxRequestsPerPeer int `mapstructure:"max_requests_per_peer"`
	// Timeout is how long a request may take, from its header on. It ends a body
	// that is sent slowly.
	Timeout time.Duration `mapstructure:"timeout"`
	// Hosts are the names that a request may be for, beside those of loopback. Empty:
	// every name.
	Hosts []string `mapstructure:"hosts"`
}

func createDefaultConfig() component.Config {
	return &Config{MaxRequests: 64, MaxRequestsPerPeer: 16, Timeout: 30 * time.Second}
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a
// duration without a unit stop the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate reports every key that cannot be used, with its remedy.
func (c *Config) Validate() error {
	var errs []error
	if c.MaxRequests < 1 || c.MaxRequests > mostRequests {
		errs = append(errs, fmt.Errorf("max_requests: %d: set it from 1 to %d", c.MaxRequests, mostRequests))
	}
	if c.MaxRequestsPerPeer < 1 || c.MaxRequestsPerPeer > c.MaxRequests {
		errs = append(errs, fmt.Errorf("max_requests_per_peer: %d: set it from 1 to max_requests, which is %d", c.MaxRequestsPerPeer, c.MaxRequests))
	}
	if c.Timeout < time.Second || c.Timeout > 10*time.Minute {
		errs = append(errs, fmt.Errorf("timeout: %s: set it from 1s to 10m", c.Timeout))
	}
	for i, host := range c.Hosts {
		if host == "" || strings.ContainsAny(host, "/@*[] ") || strings.Count(host, ":") == 1 {
			errs = append(errs, fmt.Errorf("hosts::%d: %q: set it to a name or an address, without scheme, port and *", i, host))
		}
	}
	return errors.Join(errs...)
}
