// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package requestlimitextension

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/confmap"
)

func TestConfig(t *testing.T) {
	for name, c := range map[string]struct {
		config map[string]any
		err    string
	}{
		"default":          {},
		"all":              {map[string]any{"max_requests": 4, "max_requests_per_peer": 4, "timeout": "10s", "hosts": []any{"localhost", "::1", "gpu.example"}}, ""},
		"none":             {map[string]any{"max_requests": 0}, "max_requests: 0: set it from 1 to 100000"},
		"more of a peer":   {map[string]any{"max_requests": 4}, "max_requests_per_peer: 16: set it from 1 to max_requests, which is 4"},
		"no time":          {map[string]any{"timeout": "0s"}, "timeout: 0s: set it from 1s to 10m"},
		"no unit":          {map[string]any{"timeout": 30}, "timeout"},
		"a host with port": {map[string]any{"hosts": []any{"localhost:4318"}}, `hosts::0: "localhost:4318": set it to a name or an address, without scheme, port and *`},
		"a host with *":    {map[string]any{"hosts": []any{"a", "*.example"}}, "hosts::1"},
		"there is no such": {map[string]any{"max_connections": 5}, "max_connections: there is no such key"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			err := cfg.Unmarshal(confmap.NewFromStringMap(c.config))
			if err == nil {
				err = cfg.Validate()
			}
			if c.err == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, c.err)
		})
	}
}
