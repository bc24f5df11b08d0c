// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// A configuration in a guide that is preceded by
//
//	<!-- test: validate config/gateway.yaml -->   goes over that one
//	<!-- test: validate alone -->
//
// is taken by the collector's own validation.
var guideConfig = regexp.MustCompile("(?ms)^<!-- test: validate (\\S+) -->\n```yaml\n(.*?)^```$")

func TestConfigurationsInGuides(t *testing.T) {
	guides, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	validated := 0
	for _, guide := range guides {
		text, err := os.ReadFile(guide)
		require.NoError(t, err)
		for _, found := range guideConfig.FindAllStringSubmatch(string(text), -1) {
			validated++
			overlay := filepath.Join(t.TempDir(), "guide.yaml")
			require.NoError(t, os.WriteFile(overlay, []byte(found[2]), 0o600))
			arguments := []string{"validate"}
			if found[1] != "alone" {
				arguments = append(arguments, "--config", filepath.Join(root, found[1]))
			}
			out, err := collector(t, []string{"STATE_DIRECTORY=" + t.TempDir()}, append(arguments, "--config", overlay)...)
			assert.NoError(t, err, "%s: %s", filepath.Base(guide), out)
		}
	}
	assert.GreaterOrEqual(t, validated, 2)
}

// Values of the chart that guides set are in its values.yaml.
func TestChartValuesInGuides(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "charts", "otelcol-gpu", "values.yaml"))
	require.NoError(t, err)
	var values map[string]any
	require.NoError(t, yaml.Unmarshal(text, &values))
	checked := 0
	for _, guide := range []string{"install.md", "migrate.md", "existing-collector.md", "sizing.md", "support.md", "security.md"} {
		for _, found := range regexp.MustCompile(`--set ([A-Za-z0-9.-]+)=`).FindAllStringSubmatch(read(t, "docs", guide), -1) {
			checked++
			here := any(values)
			for _, key := range strings.Split(found[1], ".") {
				object, ok := here.(map[string]any)
				require.True(t, ok, "%s sets %s", guide, found[1])
				require.Contains(t, object, key, "%s sets %s", guide, found[1])
				here = object[key]
			}
		}
	}
	assert.Greater(t, checked, 5)
}
