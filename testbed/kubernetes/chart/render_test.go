// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Both majors of Helm find nothing to complain about, and render the same; so they do
// where an upgrade with --reuse-values has the values of a release before, which lack
// any block and any single value that was added since.
func TestRender(t *testing.T) {
	t.Parallel()
	both, reused := helms(t), lacking(t)
	for _, d := range drawings {
		t.Run(d.name, func(t *testing.T) {
			var first []*unstructured.Unstructured
			for _, h := range both {
				text, err := h.template(t, d.values, d.apiArgs()...)
				require.NoError(t, err)
				objects := decode(t, text)
				require.NotEmpty(t, objects)
				noSecretElsewhere(t, objects)
				objects = comparable(objects)
				if first == nil {
					first = objects
				}
				assert.Equal(t, first, objects, h.name)
				_, err = h.run(t.Context(), append([]string{"lint", "--strict", "charts/otelcol-gpu"}, valuesArgs(t, d.values)...)...)
				assert.NoError(t, err)
			}
			// The drawing's values come after those.
			h := both[1]
			text, err := h.run(t.Context(), slices.Concat([]string{"template", release, "charts/otelcol-gpu", "--namespace", release, "--values", reused},
				valuesArgs(t, d.values), d.apiArgs())...)
			require.NoError(t, err)
			assert.Equal(t, first, comparable(decode(t, text)), "without the defaults")
		})
	}
}

// lacking is a file that takes all blocks and single values of the chart away.
func lacking(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "charts", "otelcol-gpu", "values.yaml"))
	require.NoError(t, err)
	var defaults map[string]any
	require.NoError(t, yaml.Unmarshal(text, &defaults))
	delete(defaults, "dcgm-exporter") // Helm looks at its condition before any template
	absent, _ := without(defaults)
	require.Greater(t, len(absent), 20)
	absent["image"] = map[string]any{} // --set needs a block
	nothing, err := json.Marshal(absent)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "absent.yaml")
	require.NoError(t, os.WriteFile(file, nothing, 0o600))
	return file
}

// without are the values that take blocks and single values away, and whether that is
// all of them. Lists, events and maps in Kubernetes' own words stay: templates do not
// fill them in.
func without(defaults map[string]any) (map[string]any, bool) {
	kept := []string{"events", "resources", "updateStrategy", "podSecurityContext", "labels"}
	out, all := map[string]any{}, true
	for key, value := range defaults {
		block, isBlock := value.(map[string]any)
		list, isList := value.([]any)
		switch {
		case isList && len(list) > 0 || isBlock && len(block) > 0 && slices.Contains(kept, key):
			all = false
		case isBlock:
			inner, whole := without(block)
			out[key] = inner
			if whole {
				out[key] = nil
			}
			all = all && whole
		default:
			out[key] = nil
		}
	}
	return out, all
}

// An upgrade with --reuse-values has the values of the release before: what is newer
// than those is absent, and the connector's default applies. How long a node may be
// silent follows the collection interval without any value.
func TestEventsThatValuesDoNotHave(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "charts", "otelcol-gpu", "values.yaml"))
	require.NoError(t, err)
	var values struct {
		Thresholds struct {
			Events map[string]map[string]any `json:"events"`
		} `json:"thresholds"`
	}
	require.NoError(t, yaml.Unmarshal(text, &values))
	defaults := values.Thresholds.Events
	require.NotEmpty(t, defaults)
	nothing, switches := map[string]any{}, map[string]any{}
	for name, event := range defaults {
		nothing[name] = nil // how Helm removes a value
		one := map[string]any{"enabled": false}
		for key := range event {
			if key != "enabled" {
				one[key] = nil
			}
		}
		switches[name] = one
	}
	for _, mode := range []string{"cluster", "standalone"} {
		for name, test := range map[string]struct{ given, want map[string]any }{
			"no event": {nothing, map[string]any{"gpu.node.lost": map[string]any{"lost_after": "900s"}}},
			"no key":   {switches, switchedOff(defaults, "900s")},
		} {
			given, err := json.Marshal(map[string]any{
				"mode": mode, "collectionInterval": "5m", "thresholds": map[string]any{"events": test.given},
			})
			require.NoError(t, err)
			for _, h := range helms(t) {
				text, err := h.template(t, string(given))
				require.NoError(t, err, "%s, %s", mode, name)
				assert.Equal(t, test.want, eventsOf(t, decode(t, text)), "%s, %s, %s", h.name, mode, name)
			}
		}
	}
}

// switchedOff are all events as values that have no key but enabled configure them.
func switchedOff(defaults map[string]map[string]any, lostAfter string) map[string]any {
	all := map[string]any{}
	for name := range defaults {
		all[name] = map[string]any{"enabled": false}
	}
	all["gpu.node.lost"].(map[string]any)["lost_after"] = lostAfter
	return all
}

// eventsOf are the events that gpu_events is configured with, in all ConfigMaps.
func eventsOf(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	all := map[string]any{}
	connectors := 0
	for _, o := range objects {
		if o.GetKind() != "ConfigMap" {
			continue
		}
		data, _, err := unstructured.NestedStringMap(o.Object, "data")
		require.NoError(t, err)
		for _, text := range data {
			var config map[string]any
			if yaml.Unmarshal([]byte(text), &config) != nil {
				continue // a script
			}
			events, found, err := unstructured.NestedMap(config, "connectors", "gpu_events", "events")
			require.NoError(t, err)
			if _, has, _ := unstructured.NestedMap(config, "connectors", "gpu_events"); has {
				connectors++
			}
			if found {
				maps.Copy(all, events)
			}
		}
	}
	require.NotZero(t, connectors)
	return all
}

func (d drawing) apiArgs() (args []string) {
	for _, api := range d.apis {
		args = append(args, "--api-versions", api)
	}
	return args
}

// comparable puts objects in an order, and hides what is made by chance: the
// values of Secrets and what is computed from them. That they are there stays.
func comparable(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	key := func(o *unstructured.Unstructured) string {
		return o.GetKind() + "/" + o.GetNamespace() + "/" + o.GetName()
	}
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(key(a), key(b)) })
	for _, o := range objects {
		if o.GetKind() == "Secret" {
			for _, field := range []string{"data", "stringData"} {
				values, _, _ := unstructured.NestedMap(o.Object, field)
				for k, v := range values {
					if v != "" {
						_ = unstructured.SetNestedField(o.Object, "made by chance", field, k)
					}
				}
			}
		}
		at := []string{"spec", "template", "metadata", "annotations"}
		annotations, _, _ := unstructured.NestedStringMap(o.Object, at...)
		if annotations["checksum/tls"] != "" {
			annotations["checksum/tls"] = "made by chance"
			_ = unstructured.SetNestedStringMap(o.Object, annotations, at...)
		}
	}
	return objects
}

// noSecretElsewhere is that what a rendered Secret holds is in no other object.
func noSecretElsewhere(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != "Secret" {
			continue
		}
		data, _, err := unstructured.NestedStringMap(o.Object, "data")
		require.NoError(t, err)
		for key, encoded := range data {
			value, err := base64.StdEncoding.DecodeString(encoded)
			require.NoError(t, err)
			require.NotEmpty(t, value, key)
			for _, other := range objects {
				if other.GetKind() == "Secret" {
					continue
				}
				text, err := other.MarshalJSON()
				require.NoError(t, err)
				assert.NotContains(t, string(text), encoded, "%s in %s %s", key, other.GetKind(), other.GetName())
				assert.NotContains(t, string(text), string(value), "%s in %s %s", key, other.GetKind(), other.GetName())
			}
		}
	}
}
