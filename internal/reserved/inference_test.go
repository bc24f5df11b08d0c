// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package reserved

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// A page of an engine has no family of others either: config/inference.yaml drops
// those where it scrapes, so that what the scrape counts is what arrives.
func TestPagesOfEnginesHaveTheirOwnNames(t *testing.T) {
	text, err := os.ReadFile("../../config/inference.yaml")
	require.NoError(t, err)
	block := regexp.MustCompile(`(?s)metric_relabel_configs:\n(.*?)\n\n`).FindSubmatch(text)
	require.NotNil(t, block)
	var rules []*relabel.Config
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(string(block[1]), "$$", "$")), &rules))
	for _, rule := range rules {
		require.NoError(t, rule.Validate(model.UTF8Validation))
	}
	kept := func(name string) bool {
		return relabel.ProcessBuilder(labels.NewBuilder(labels.FromStrings(model.MetricNameLabel, name)), rules...)
	}
	for _, family := range families(t) {
		for _, name := range []string{family, "_" + family, "__" + family, "total_" + family, "_ratio_" + family} {
			assert.False(t, kept(name), name)
		}
	}
	for _, name := range []string{
		"vllm:gpu_cache_usage_perc", "llamacpp:requests_processing", "trtllm:kv_cache_hit_rate", "vllm:e2e_request_latency_seconds_bucket", "sglang:num_running_reqs", "gpu_cache_usage_perc", "ray_vllm:kv", "ray_serve_num_replicas",
		"nv_gpu_utilization", "tgi_request_count", "uptime", "upstream_requests", "hwloc", "num_request_max", "total_tokens",
	} {
		assert.True(t, kept(name), name)
		assert.Equal(t, Free, Of(name), name)
	}
}
