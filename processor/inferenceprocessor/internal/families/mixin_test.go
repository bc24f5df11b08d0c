// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every series of engines and gateways that dashboards and rules read is of a metric
// that a row makes, but for up, which is the scraper's, and histograms' parts.
func TestRulesReadWhatRowsMake(t *testing.T) {
	made := map[string]bool{"inference_server_up": true, "inference_gateway_up": true}
	for _, e := range Engines() {
		for _, r := range e.Rows {
			made[r.Metric.Prometheus()] = true
		}
	}
	root := filepath.Join("..", "..", "..", "..", "mixin")
	var read []string
	for _, file := range []string{"rules/recording.yaml", "rules/alerts-inference.yaml", "dashboards/otelcol-gpu-inference.json"} {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		require.NoError(t, err)
		for _, found := range regexp.MustCompile(`\b((?:gen_ai|inference)_(?:server|gateway)_[a-z_]+)\{`).FindAllStringSubmatch(string(text), -1) {
			read = append(read, found[1])
		}
	}
	slices.Sort(read)
	read = slices.Compact(read)
	require.Greater(t, len(read), 20)
	for _, name := range read {
		histogram := name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			histogram = strings.TrimSuffix(histogram, suffix)
		}
		assert.True(t, made[name] || made[histogram], name)
	}
}
