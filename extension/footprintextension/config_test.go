// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package footprintextension

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestConfig(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		errs   []string
	}{
		"default":   {func(*Config) {}, nil},
		"delay":     {func(c *Config) { c.Delay = time.Millisecond }, []string{"delay: 1ms is too short; at least 1s"}},
		"interval":  {func(c *Config) { c.Interval = time.Second }, []string{"interval: 1s is too short; at least 1m0s"}},
		"all wrong": {func(c *Config) { *c = Config{} }, []string{"delay: 0s", "interval: 0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			test.change(cfg)
			err := cfg.Validate()
			if test.errs == nil {
				assert.NoError(t, err)
			}
			for _, text := range test.errs {
				assert.ErrorContains(t, err, text)
			}
		})
	}
}
