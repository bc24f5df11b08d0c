// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
)

func TestConfig(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	whole := &Config{
		Rules: []RuleSet{"service"}, Events: defaultEvents(), MaxSubjects: 20_000,
		Staleness: 45 * time.Second, SubjectTTL: 24 * time.Hour, RestoredTTL: 15 * time.Minute,
	}
	small := *whole
	small.MaxSubjects = 5
	small.Staleness, small.SubjectTTL = time.Minute, time.Hour
	small.Events = defaultEvents()
	for event, keys := range map[string]rule.Settings{
		"gpu.exporter.down": {"for": 2 * time.Minute}, "gpu.device.lost": {"scrapes": 5},
		"gpu.xid": {"repeat_after": time.Hour}, "gpu.ecc.uncorrected": {"repeat_after": time.Duration(0)},
		"gpu.row_remap.failure": {"enabled": false}, "gpu.idle_held": {"enabled": false},
		"gpu.throttle":        {"for": time.Minute, "clear_for": time.Second},
		"gpu.temperature":     {"high": 70., "high_for": time.Minute, "critical": 75.5, "critical_for": time.Second, "memory_high": 80., "memory_critical": 85., "hysteresis": 1.},
		"gpu.memory.pressure": {"high": 0.8, "high_for": time.Second, "critical": 0.9, "critical_for": time.Duration(0), "hysteresis": 0.1},
		"gpu.node.lost":       {"lost_after": 5 * time.Minute},
	} {
		maps.Copy(small.Events[event], keys)
	}
	both := *whole
	both.Rules = []RuleSet{"service", "device"}
	id := component.MustNewIDWithName("file_storage", "state")
	small.Storage, small.RestoredTTL = &id, time.Hour
	for _, tt := range []struct {
		name      string
		want      *Config
		unmarshal string
		err       string
	}{
		{name: "", want: whole},
		{name: "all", want: &small},
		{name: "device", want: &both},
		{name: "unknown", err: `rules: "pods" is not a rule set: use [device], [service] or both`},
		{name: "twice", err: "rules: service is listed twice"},
		{name: "none", err: "rules: no rule set is listed: set it to [device] in the agent"},
		{name: "off", err: "events: every event of the rule sets is switched off"},
		{name: "limit", err: "max_subjects: -1: set it to 1 or more"},
		{name: "ttl", err: "restored_ttl: 0s: set it above 0"},
		{name: "storage", unmarshal: "storage"},
		{name: "durations", err: "events::gpu.exporter.down::for: -1s: set it to 0s or more, and to 24h0m0s at most"},
		{name: "durations", err: "events::gpu.node.lost::lost_after: 1s: set it to 30s or more"},
		{name: "durations", err: "staleness: 0s: set it above 0, to three collection intervals"},
		{name: "durations", err: "subject_ttl: 1m0s: set it to 10m0s or more"},
		{name: "thresholds", err: "events::gpu.temperature::critical: 80: set it above high (85)"},
		{name: "thresholds", err: "events::gpu.temperature::memory_critical: NaN: set it above memory_high (95)"},
		{name: "thresholds", err: "events::gpu.temperature::hysteresis: -1: set it to 0 degrees or more"},
		{name: "thresholds", err: "events::gpu.memory.pressure::high: 95: it is a fraction of the memory: set it between 0 and 1"},
		{name: "thresholds", err: "events::gpu.memory.pressure::critical: 0.98: set it above high (95) and below 1"},
		{name: "thresholds", err: "events::gpu.memory.pressure::hysteresis: -0.1: set it to 0 or more"},
		{name: "thresholds", err: "events::gpu.device.lost::scrapes: 0: set it to 1 or more"},
		{name: "fractions", err: "events::gpu.temperature::high: 0.85: it is in degrees Celsius: set it between 30 and 150"},
		{name: "fractions", err: "events::gpu.temperature::critical: 0.9: it is in degrees Celsius"},
		{name: "misspelled", unmarshal: "gpu.service.parcial"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sub, err := conf.Sub(component.NewIDWithName(metadata.Type, tt.name).String())
			require.NoError(t, err)
			cfg := createDefaultConfig()
			err = sub.Unmarshal(cfg)
			if tt.unmarshal != "" {
				require.ErrorContains(t, err, tt.unmarshal)
				return
			}
			require.NoError(t, err)
			err = cfg.(*Config).Validate()
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, cfg)
		})
	}
}
