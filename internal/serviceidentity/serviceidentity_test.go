// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package serviceidentity

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFromLabels(t *testing.T) {
	for _, tt := range []struct {
		name   string
		labels map[string]string
		want   string
	}{
		{"no labels: the pod's own name, hash and all", nil, "chat-7d9c6b5f4-x2x9k"},
		{"instance before name before app", map[string]string{
			"app": "a", "app.kubernetes.io/name": "n", "app.kubernetes.io/instance": "i",
		}, "i"},
		{"name before app", map[string]string{"app": "a", "app.kubernetes.io/name": "n"}, "n"},
		{"app", map[string]string{"app": "a"}, "a"},
		{"an empty label is absent", map[string]string{
			"app.kubernetes.io/instance": "", "app": "a",
		}, "a"},
		{"other labels name no service", map[string]string{
			"k8s-app": "x", "app.kubernetes.io/part-of": "y",
		}, "chat-7d9c6b5f4-x2x9k"},
		{"any UTF-8", map[string]string{"app": "größe/模型"}, "größe/模型"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := FromLabels("chat-7d9c6b5f4-x2x9k", func(i int) string { return tt.labels[Labels[i]] })
			assert.Equal(t, tt.want, got)
		})
	}
}
