// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amdgpureceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

func TestSource(t *testing.T) {
	for name, tt := range map[string]struct {
		keys map[string]any
		want []string // parts of the error
	}{
		"sysfs":                    {keys: map[string]any{"source": "sysfs", "node_name": "a"}},
		"sysfs of a container":     {keys: map[string]any{"source": "sysfs", "sysfs_root": "/host/sys", "collection_interval": "5s"}},
		"exporter":                 {keys: map[string]any{"source": "exporter", "endpoints": []any{"http://localhost:5000/metrics"}}},
		"exporter without address": {keys: map[string]any{"source": "exporter"}, want: []string{"endpoints: is empty"}},
		"none":                     {keys: map[string]any{"source": "kernel"}, want: []string{`source: is "kernel": use exporter or sysfs`}},
		"two sources": {
			keys: map[string]any{"source": "sysfs", "endpoints": []any{"http://localhost:5000/metrics"}},
			want: []string{"endpoints: is set with source: sysfs", "remove it"},
		},
		"sysfs and discovery": {
			keys: map[string]any{"source": "sysfs", "kubernetes": map[string]any{"node_name": "a"}},
			want: []string{"kubernetes: is set with source: sysfs", "set node_name"},
		},
		"relative root": {keys: map[string]any{"source": "sysfs", "sysfs_root": "sys"}, want: []string{`sysfs_root: is "sys"`}},
		"no root":       {keys: map[string]any{"source": "sysfs", "sysfs_root": ""}, want: []string{`sysfs_root: is ""`}},
		"interval":      {keys: map[string]any{"source": "sysfs", "collection_interval": "1ms"}, want: []string{"collection_interval"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			require.NoError(t, confmap.NewFromStringMap(tt.keys).Unmarshal(cfg))
			err := cfg.Validate()
			if tt.want == nil {
				require.NoError(t, err)
				return
			}
			for _, part := range tt.want {
				assert.ErrorContains(t, err, part)
			}
		})
	}
}
