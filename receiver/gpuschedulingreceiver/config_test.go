// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuschedulingreceiver

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

// validate is what the Collector does with a configuration.
func validate(c *Config) error { return errors.Join(c.Config.Validate(), c.Validate()) }

func TestConfig(t *testing.T) {
	require.NoError(t, validate(createDefaultConfig().(*Config)))
	for name, tt := range map[string]struct {
		key   string
		value any
		want  string
	}{
		"interval":      {"interval", "100ms", "interval: is 100ms: use 1s to 5m0s"},
		"no unit":       {"interval", 15, "write 15s"},
		"window":        {"request_window", "1s", "request_window: is 1s: use 1m0s to 168h0m0s"},
		"unknown":       {"node", false, "nodes"},
		"taint":         {"gpu_taints", []any{"nvidia.com/gpu=present:NoSchedule"}, "gpu_taints::0: "},
		"all taints":    {"gpu_taints", []any{"*"}, "gpu_taints::0: "},
		"queue label":   {"queue_labels", []any{"team name"}, "queue_labels::0: "},
		"queue label 2": {"queue_labels", []any{"team", "team"}, "queue_labels::1: "},
		"pods":          {"max_pods", 0, "max_pods: is 0: use 1 or more"},
		"nodes":         {"max_nodes", -1, "max_nodes: is -1"},
		"queues":        {"max_queues", 0, "max_queues: is 0"},
		"namespaces":    {"namespaces", []any{"ml"}, "namespaces: is [\"ml\"]: leave it out"},
		"resource":      {"resource_names", []any{"gpu"}, "resource_names::0: "},
		"driver":        {"dra", map[string]any{"drivers": []any{"a b"}}, "dra::drivers::0: "},
		"auth":          {"auth_type", "tls", "auth_type: is \"tls\""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			err := confmap.NewFromStringMap(map[string]any{tt.key: tt.value}).Unmarshal(cfg)
			if err == nil {
				err = validate(cfg)
			}
			require.Error(t, err)
			assert.ErrorContains(t, err, tt.want)
		})
	}
}
