// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package besteffortconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/confmap"
)

func TestConfig(t *testing.T) {
	for name, c := range map[string]struct {
		config map[string]any
		err    string
	}{
		"default":   {},
		"all":       {map[string]any{"timeout": "250ms", "max_in_flight": 64}, ""},
		"no wait":   {map[string]any{"timeout": "0s"}, "timeout: 0s: set it above 0 and to 10s at most"},
		"long wait": {map[string]any{"timeout": "11s"}, "timeout: 11s: set it above 0 and to 10s at most"},
		"no unit":   {map[string]any{"timeout": 5}, "timeout"},
		"none":      {map[string]any{"max_in_flight": 0}, "max_in_flight: 0: set it from 1 to 1024"},
		"unknown":   {map[string]any{"queue_size": 5}, "queue_size: there is no such key"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			err := cfg.Unmarshal(confmap.NewFromStringMap(c.config))
			if err == nil {
				err = cfg.Validate()
			}
			if c.err == "" {
				assert.NoError(t, err)
				assert.Positive(t, cfg.Timeout+time.Duration(cfg.MaxInFlight))
				return
			}
			assert.ErrorContains(t, err, c.err)
		})
	}
}
