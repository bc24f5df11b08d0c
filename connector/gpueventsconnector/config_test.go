// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules"
)

func TestConfig(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	whole := &Config{
		Rules: []RuleSet{"service"}, Events: defaultEvents(), MaxSubjects: 20_000,
		Staleness: 45 * time.Second, SubjectTTL: 24 * time.Hour, RestoredTTL: 15 * time.Minute,
		Health: Health{MaxReasons: 16},
	}
	small := *whole
	small.MaxSubjects = 5
	small.Staleness, small.SubjectTTL = time.Minute, time.Hour
	both := *whole
	both.Rules = []RuleSet{"service", "device"}
	id := component.MustNewIDWithName("file_storage", "state")
	small.Storage, small.RestoredTTL = &id, time.Hour
	healthy := both
	at := time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC)
	healthy.Health = Health{
		Score: true, MaxReasons: 4, Expected: map[string]int{"p5.48xlarge": 8},
		Cleared: Cleared{"GPU-1": at, "node-a": at, "node-b": at},
	}
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
		{name: "health", want: &healthy},
		{name: "health_wrong", err: "health::max_reasons: 0: set it to 1 or more, and to 32 at most; the default is 16"},
		{name: "health_wrong", err: "health::expected::p5.48xlarge: 0: set it to the number of GPUs of such a node, 1 to 1024, or remove it"},
		{name: "health_time", unmarshal: "health::cleared::GPU-1: yesterday is no time: write it as 2026-01-31T15:04:05Z"},
		{name: "health_key", unmarshal: "health::expcted"},
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

// Every key of every rule is read, and changes nothing else.
func TestEveryKeyOfEveryRule(t *testing.T) {
	for _, r := range rules.All() {
		keys := append([]rule.Key{{Name: rule.Enabled, Default: true}}, r.Keys...)
		for _, k := range keys {
			written, want := other(t, k.Default)
			cfg := createDefaultConfig()
			require.NoError(t, confmap.NewFromStringMap(map[string]any{
				"events": map[string]any{r.Event: map[string]any{k.Name: written}},
			}).Unmarshal(cfg), "%s::%s", r.Event, k.Name)
			events := defaultEvents()
			events[r.Event][k.Name] = want
			require.Equal(t, events, cfg.(*Config).Events, "%s::%s", r.Event, k.Name)
		}
	}
}

// other is a value of the type of a default that is not it, as it is written and as it
// is read.
func other(t *testing.T, byDefault any) (written, read any) {
	t.Helper()
	switch v := byDefault.(type) {
	case bool:
		return !v, !v
	case int:
		return v + 1, v + 1
	case float64:
		return v / 2, v / 2
	case time.Duration:
		return (v + time.Second).String(), v + time.Second
	}
	require.Failf(t, "no such type", "%T", byDefault)
	return nil, nil
}

// A connector of which every rule is switched off is a mistake; one rule is enough.
func TestEveryRuleSwitchedOff(t *testing.T) {
	for _, set := range []RuleSet{RuleSetDevice, RuleSetService} {
		cfg := createDefaultConfig().(*Config)
		cfg.Rules = []RuleSet{set}
		last := ""
		for _, r := range rules.All() {
			if r.Set == set {
				cfg.Events[r.Event][rule.Enabled] = false
				last = r.Event
			}
		}
		require.ErrorContains(t, cfg.Validate(), "events: every event of the rule sets is switched off", "%s", set)
		cfg.Events[last][rule.Enabled] = true
		require.NoError(t, cfg.Validate(), "%s", set)
	}
}
