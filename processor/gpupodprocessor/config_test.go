// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/metadata"
)

func TestConfig(t *testing.T) {
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	for _, tt := range []struct {
		name string
		want *Config
		err  string
	}{
		{name: "", want: &Config{ExporterLabels: "fallback", ServiceName: "exporter_labels", MaxSeries: 100_000, MaxAge: 45 * time.Second, MaxDevices: 100_000}},
		{name: "all", want: &Config{ExporterLabels: "ignore", ServiceName: "none", MaxSeries: 5, MaxAge: 30 * time.Second, MaxDevices: 7, PodDevices: true}},
		{name: "ends", err: "pod_devices: with only_end_series no devices of pods are known"},
		{name: "labels", err: `exporter_labels: "always" is neither fallback nor ignore`},
		{name: "service", err: `service_name: "pod" is neither exporter_labels nor none`},
		{name: "age", err: "max_age: 1s: set it to three of gpu_allocation's intervals"},
		{name: "long", err: "max_age: 11m0s: set it to three"},
		{name: "devices", err: "max_devices: 0: set it to 1 or more"},
		{name: "limit", err: "max_series: 0: set it to 1 or more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sub, err := conf.Sub(component.NewIDWithName(metadata.Type, tt.name).String())
			require.NoError(t, err)
			cfg := createDefaultConfig()
			require.NoError(t, sub.Unmarshal(cfg))
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
