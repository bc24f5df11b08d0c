// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The rules speak of metrics that the components really have.
func TestRulesAreOfMetricsThatExist(t *testing.T) {
	files, err := filepath.Glob("../../../../*/*/documentation.md")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		all.Write(text)
	}
	for _, r := range rules {
		// These are the Collector's own, which document themselves elsewhere.
		if strings.HasPrefix(r.metric, "otelcol_receiver_") || strings.HasPrefix(r.metric, "otelcol_exporter_enqueue_") || strings.HasPrefix(r.metric, "otelcol_exporter_send_") {
			continue
		}
		_, section, found := strings.Cut(all.String(), "### "+r.metric+"\n")
		if !assert.True(t, found, r.metric) {
			continue
		}
		section, _, _ = strings.Cut(section, "\n### ")
		if r.label != "" {
			assert.Contains(t, section, "| "+r.label+" |", r.metric)
		}
		for _, value := range slices.Concat(r.fine, r.only) {
			assert.Regexp(t, `\b`+value+`\b`, section, r.metric)
		}
	}
}
