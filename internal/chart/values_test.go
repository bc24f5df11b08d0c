// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// node is one level of a JSON schema.
type node struct {
	Ref        string                     `json:"$ref"`
	Properties map[string]json.RawMessage `json:"properties"`
	Additional json.RawMessage            `json:"additionalProperties"`
}

// schema is values.schema.json: what a path may have below it.
type schema struct {
	node
	Defs map[string]json.RawMessage `json:"definitions"`
}

func (s *schema) at(t *testing.T, raw json.RawMessage) node {
	t.Helper()
	var n node
	require.NoError(t, json.Unmarshal(raw, &n))
	if name, ok := strings.CutPrefix(n.Ref, "#/definitions/"); ok {
		require.Contains(t, s.Defs, name)
		return s.at(t, s.Defs[name])
	}
	return n
}

// Every default has its place in the schema, and the schema has nothing that
// values.yaml keeps quiet about.
func TestValuesAndSchemaHaveTheSameKeys(t *testing.T) {
	var values map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(read(t, chart, "values.yaml")), &values))
	var s schema
	require.NoError(t, json.Unmarshal([]byte(read(t, chart, "values.schema.json")), &s))
	// global is Helm's; replicas is there to be refused with a reason; the
	// shared definition of a volume has what only some volumes do.
	silent := map[string]bool{"global": true, "gateway.replicas": true}
	compared := 0
	var compare func(path string, value map[string]any, n node)
	compare = func(path string, value map[string]any, n node) {
		if string(n.Additional) != "false" {
			return // a map of the user's own
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			below := strings.TrimPrefix(path+"."+key, ".")
			compared++
			if raw, ok := n.Properties[key]; assert.True(t, ok, "%s is not in values.schema.json", below) {
				if inner, ok := value[key].(map[string]any); ok {
					compare(below, inner, s.at(t, raw))
				}
			}
		}
		for key := range n.Properties {
			below := strings.TrimPrefix(path+"."+key, ".")
			assert.True(t, value == nil || silent[below] || hasKey(value, key) || strings.HasSuffix(path, "resources") || path == "webhooks.proxy",
				"%s is in values.schema.json and not in values.yaml", below)
		}
	}
	compare("", values, s.node)
	assert.Greater(t, compared, 200)
}

// The chart gives agents the events about devices, and gateways those about services.
func TestTemplatesKnowTheEventsOfServices(t *testing.T) {
	list := regexp.MustCompile(`\$service := list((?: "[^"]+")+)`).FindStringSubmatch(read(t, chart, "templates", "_overlay.tpl"))
	require.Len(t, list, 2)
	var want []string
	for _, r := range names.EventRules() {
		if r.Set == "service" {
			want = append(want, strconv.Quote(r.Event))
		}
	}
	assert.ElementsMatch(t, want, strings.Fields(list[1]))
}

func hasKey(m map[string]any, key string) bool {
	_, ok := m[key]
	return ok
}

// The README names every value of the first two levels.
func TestReadmeNamesEveryValue(t *testing.T) {
	readme := read(t, chart, "README.md")
	table := ""
	for _, line := range strings.Split(readme[strings.Index(readme, "## Values"):], "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			table += cells[1]
		}
	}
	var values map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(read(t, chart, "values.yaml")), &values))
	shared := []string{"agent", "gateway", "rawGateway", "standalone"}
	// One row has these for all four, and one those of placement.
	everywhere := []string{"resources", "memoryLimitMiB", "priorityClassName", "terminationGracePeriodSeconds", "config",
		"extraEnv", "extraVolumes", "extraVolumeMounts", "podAnnotations", "podLabels"}
	placed := []string{"nodeSelector", "tolerations", "affinity"}
	for key, value := range values {
		if strings.Contains(table, "`"+key+"`") {
			continue
		}
		inner, ok := value.(map[string]any)
		if !assert.True(t, ok && len(inner) > 0, "README.md: the table lacks %s", key) {
			continue
		}
		for below := range inner {
			named := strings.Contains(table, "`"+key+"."+below+"`")
			if slices.Contains(shared, key) {
				named = named || slices.Contains(everywhere, below) || key == "rawGateway" && slices.Contains(placed, below)
			}
			assert.True(t, named, "README.md: the table lacks %s.%s", key, below)
		}
	}
}
