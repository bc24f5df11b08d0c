// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/prometheus/common/promslog"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Prometheus itself takes the compose file's configuration.
func TestPrometheusOfTheComposeFile(t *testing.T) {
	t.Parallel()
	loaded, err := promconfig.LoadFile(filepath.Join(root, "docs", "examples", "compose", "prometheus.yaml"), false, promslog.NewNopLogger())
	require.NoError(t, err)
	require.Len(t, loaded.ScrapeConfigs, 2)
	assert.True(t, loaded.ScrapeConfigs[0].HonorLabels, "the collector's labels are of the devices, not of the target")
	assert.False(t, loaded.ScrapeConfigs[1].HonorLabels)
}

// The relabelling in the guide to migration gives old boards the labels that they
// ask for, and leaves other series alone. Prometheus' own code does it.
func TestRelabellingOfTheMigrationGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join(root, "docs", "migrate.md"))
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```yaml\n(metric_relabel_configs:.*?)```").FindSubmatch(guide)
	require.Len(t, block, 2)
	text := "scrape_configs:\n  - job_name: x\n" + regexp.MustCompile(`(?m)^`).ReplaceAllString(string(block[1]), "    ")
	loaded, err := promconfig.Load(text, promslog.NewNopLogger())
	require.NoError(t, err)
	rules := loaded.ScrapeConfigs[0].MetricRelabelConfigs
	require.Len(t, rules, 3)
	process := func(pairs ...string) map[string]string {
		builder := labels.NewBuilder(labels.FromStrings(pairs...))
		require.True(t, relabel.ProcessBuilder(builder, rules...))
		return builder.Labels().Map()
	}
	old := process("__name__", "DCGM_FI_DEV_GPU_UTIL", "pod", "llama-0", "namespace", "inference", "container", "vllm", "hw_id", "GPU-1")
	assert.Equal(t, "llama-0", old["exported_pod"])
	assert.Equal(t, "inference", old["exported_namespace"])
	assert.Equal(t, "vllm", old["exported_container"])
	assert.NotContains(t, process("__name__", "DCGM_FI_DEV_GPU_UTIL", "hw_id", "GPU-2"), "exported_pod", "a free device has none")
	assert.NotContains(t, process("__name__", "hw_power_watts", "pod", "x"), "exported_pod")
}
