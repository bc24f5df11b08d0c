// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/metadata"
)

func TestConfig(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	whole := &Config{
		Rules: []RuleSet{"service"}, Events: Events{ServicePartial: Event{Enabled: true}}, MaxSubjects: 20_000,
		RestoredTTL: 15 * time.Minute,
	}
	small := *whole
	small.MaxSubjects = 5
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
		{name: "device", err: "rules: this version has no rules in the set device: remove it"},
		{name: "unknown", err: `rules: "pods" is no rule set: use [service]`},
		{name: "twice", err: "rules: service is there twice"},
		{name: "none", err: "rules: no rule set is named: set it to [service]"},
		{name: "off", err: "events: every event of the rule sets is switched off"},
		{name: "limit", err: "max_subjects: -1: set it to 1 or more"},
		{name: "ttl", err: "restored_ttl: 0s: set it above 0"},
		{name: "storage", unmarshal: "storage"},
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
