// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"encoding/base64"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Both majors of Helm find nothing to complain about, and render the same.
func TestRender(t *testing.T) {
	t.Parallel()
	both := helms(t)
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
		})
	}
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
