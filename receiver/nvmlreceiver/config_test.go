// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

func TestConfig(t *testing.T) {
	for name, c := range map[string]struct {
		keys map[string]any
		want string // part of the error, empty for none
	}{
		"nothing":      {map[string]any{}, ""},
		"beside dcgm":  {map[string]any{"groups": []any{"inventory", "xid", "processes"}, "processes": map[string]any{"by": "container"}}, ""},
		"each second":  {map[string]any{"collection_interval": "1s"}, ""},
		"too often":    {map[string]any{"collection_interval": "999ms"}, "collection_interval: is 999ms: use 1s to 5m0s"},
		"too seldom":   {map[string]any{"collection_interval": "6m"}, "collection_interval: is 6m0s"},
		"timeout":      {map[string]any{"timeout": "16s"}, "timeout: is 16s: use more than 0s, and at most collection_interval, 15s"},
		"call timeout": {map[string]any{"call_timeout": "0s"}, "call_timeout: is 0s"},
		"no group":     {map[string]any{"groups": []any{}}, "groups: is empty"},
		"unknown":      {map[string]any{"groups": []any{"memory", "temprature"}}, `groups::1: is "temprature": did you mean temperature?`},
		"repeated":     {map[string]any{"groups": []any{"memory", "memory"}}, "groups::1: repeats memory"},
		"by without group": {
			map[string]any{"processes": map[string]any{"by": "process"}},
			"processes::by: is process, without processes in groups: add it there, or set processes::by to off",
		},
		"group without by": {map[string]any{"groups": []any{"processes"}}, "processes::by: is off, with processes in groups"},
		"by what":          {map[string]any{"processes": map[string]any{"by": "pod"}}, `processes::by: is "pod": use off, container or process`},
		"processes too often": {
			map[string]any{"collection_interval": "4s", "groups": []any{"processes"}, "processes": map[string]any{"by": "process"}},
			"lists of processes hold up the driver: use 5s or more",
		},
		"rows":             {map[string]any{"processes": map[string]any{"max_per_device": 0}}, "processes::max_per_device: is 0: use 1 to 4096"},
		"kernel log":       {map[string]any{"xid": map[string]any{"kernel_log": "maybe"}}, `xid::kernel_log: is "maybe": use auto, on or off`},
		"relative library": {map[string]any{"library": "libnvidia-ml.so.1"}, `library: is "libnvidia-ml.so.1": use an absolute path`},
		"relative helper":  {map[string]any{"helper": "bin/x"}, `helper: is "bin/x": use an absolute path`},
		"relative file":    {map[string]any{"release_file": "x"}, `release_file: is "x": use an absolute path`},
		"no root":          {map[string]any{"root_path": ""}, `root_path: is "": use an absolute path`},
		"frozen":           {map[string]any{"frozen_after": 1}, "frozen_after: is 1: use 2 or more scrapes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			cfg := createDefaultConfig().(*Config)
			require.NoError(t, confmap.NewFromStringMap(c.keys).Unmarshal(cfg))
			if err := cfg.Validate(); c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

func TestConfigInKubernetes(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	cfg := createDefaultConfig().(*Config)
	require.ErrorContains(t, cfg.Validate(), "node_name: is empty")
	cfg.NodeName = "a"
	require.NoError(t, cfg.Validate())
}

// TestConfigDefaults: those that depend on other keys.
func TestConfigDefaults(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	assert.NotContains(t, cfg.Groups, nvmlproto.GroupProcesses)
	assert.Len(t, cfg.Groups, len(nvmlproto.Groups)-1)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"collection_interval": "2s", "groups": []any{"power"}}).Unmarshal(cfg))
	assert.Equal(t, []time.Duration{2 * time.Second, 2 * time.Second}, []time.Duration{cfg.Timeout, cfg.CallTimeout})
	assert.Equal(t, []nvmlproto.Group{nvmlproto.GroupPower}, cfg.Groups)
}
