// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every format, and no other, is where users look for formats: in the guide's table,
// in the README's, and in the schema and the comments of the chart.
func TestEveryFormatIsDocumented(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..")
	text := func(elements ...string) string {
		content, err := os.ReadFile(filepath.Join(append([]string{root}, elements...)...))
		require.NoError(t, err)
		return string(content)
	}
	guide, readme := text("docs", "webhooks.md"), text("exporter", "webhookexporter", "README.md")
	values := regexp.MustCompile(`(?m)^ *# +format: .*$`).FindString(text("charts", "otelcol-gpu", "values.yaml"))
	var schema struct {
		Definitions struct {
			Receiver struct {
				Properties struct {
					Format struct {
						Enum []string `json:"enum"`
					} `json:"format"`
				} `json:"properties"`
			} `json:"receiver"`
		} `json:"definitions"`
	}
	require.NoError(t, json.Unmarshal([]byte(text("charts", "otelcol-gpu", "values.schema.json")), &schema))

	row := regexp.MustCompile("(?m)^\\| `receivers::NAME::format` .*$").FindString(readme)
	var all []string
	for _, f := range All() {
		all = append(all, f.Name)
		several := "no"
		if f.Group > 1 {
			several = fmt.Sprintf("up to %d", f.Group)
		}
		guided := regexp.MustCompile("(?m)^\\| `" + f.Name + "` \\|[^|]+\\| " + several + " \\|[^|]+\\|$").MatchString(guide)
		assert.True(t, guided, "docs/webhooks.md, Formats: no row of %s, %s", f.Name, several)
		assert.Contains(t, row, "`"+f.Name+"`", "README.md")
		assert.Regexp(t, `\b`+f.Name+`\b`, values, "values.yaml")
		for _, key := range f.Keys {
			assert.True(t, strings.Contains(readme, "| `receivers::NAME::"+key+"` |"), "README.md: no row of %s", key)
		}
	}
	assert.ElementsMatch(t, all, schema.Definitions.Receiver.Properties.Format.Enum, "values.schema.json")
}
