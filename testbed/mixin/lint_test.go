// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var variableUse = regexp.MustCompile(`\$\{?([a-z_]+)`)

// What a board needs to be usable: a data source that can be chosen, titles and
// descriptions, units, gaps that stay gaps, and variables that exist.
func TestBoardsAreWhole(t *testing.T) {
	titles := map[string]bool{}
	for _, d := range boards(t) {
		assert.Regexp(t, `^otelcol-gpu-[a-z]+$`, d.UID)
		assert.False(t, titles[d.Title], d.Title)
		titles[d.Title] = true
		known := []string{"__rate_interval", "__interval", "__range"}
		for _, v := range d.Templating.List {
			known = append(known, v.Name)
		}
		require.Equal(t, "datasource", d.Templating.List[0].Type)
		for _, p := range d.Panels {
			if p.Type == "row" {
				continue
			}
			what := d.UID + ": " + p.Title
			assert.NotEmpty(t, p.Title, d.UID)
			assert.GreaterOrEqual(t, len(p.Description), 15, what)
			assert.NotEmpty(t, p.FieldConfig.Defaults.Unit, what)
			require.NotNil(t, p.Datasource, what)
			assert.Equal(t, "${datasource}", p.Datasource.UID, what)
			if p.Type == "timeseries" {
				assert.Equal(t, false, p.FieldConfig.Defaults.Custom.SpanNulls, "%s: a gap is shown as a gap", what)
			}
			for _, q := range p.Targets {
				assert.Equal(t, "${datasource}", q.Datasource.UID, what)
				for _, use := range variableUse.FindAllStringSubmatch(q.Expr, -1) {
					assert.Contains(t, known, use[1], what)
				}
			}
		}
	}
}

// A board refers to another by an uid that exists, and sets variables that are
// there.
func TestLinksLeadSomewhere(t *testing.T) {
	variables := map[string][]string{}
	for _, d := range boards(t) {
		for _, v := range d.Templating.List {
			variables[d.UID] = append(variables[d.UID], v.Name)
		}
	}
	// What Open in Grafana of the console sets by default.
	for _, v := range []string{"app", "service", "namespace", "rack"} {
		assert.Contains(t, variables["otelcol-gpu-service"], v)
	}
	for uid := range variables {
		text, err := os.ReadFile(filepath.Join(root, "mixin", "dashboards", uid+".json"))
		require.NoError(t, err)
		var links []string
		for _, found := range regexp.MustCompile(`"url": ("(?:[^"\\]|\\.)*")`).FindAllSubmatch(text, -1) {
			var link string
			require.NoError(t, json.Unmarshal(found[1], &link))
			if link != "" {
				links = append(links, link)
			}
		}
		for _, link := range links {
			target := regexp.MustCompile(`^/d/([a-z-]+)/\?`).FindStringSubmatch(link)
			require.NotNil(t, target, link)
			require.Contains(t, variables, target[1], link)
			for _, v := range regexp.MustCompile(`(?:var-([a-z]+)=|\$\{([a-z]+):queryparam\})`).FindAllStringSubmatch(link, -1) {
				assert.True(t, slices.Contains(variables[target[1]], v[1]+v[2]), "%s: %s has no variable %s", uid, target[1], v[1]+v[2])
				if v[2] != "" {
					assert.Contains(t, variables[uid], v[2], "%s hands on a variable that it has not", uid)
				}
			}
		}
	}
}
