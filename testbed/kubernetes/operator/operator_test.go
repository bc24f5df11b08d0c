// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const root = "../../.."

// TestFields renders everything of the operator's that the chart has, and reads it
// into the operator's types: none of its fields may be unknown.
func TestFields(t *testing.T) {
	for _, values := range [][]string{
		{"podMonitor.enabled=true", "serviceMonitor.enabled=true", "prometheusRule.enabled=true", "prometheusRule.inference=true", "podMonitor.labels.release=a"},
		{"podMonitor.enabled=true", "rawGateway.enabled=true", "rawGateway.backend.endpoint=a.example.com:4317"},
		{"mode=standalone", "podMonitor.enabled=true", "serviceMonitor.enabled=true"},
		{"podMonitor.enabled=true", "dcgm-exporter.enabled=true"},
	} {
		t.Run(strings.Join(values, " "), func(t *testing.T) {
			args := []string{"template", "otelcol-gpu", "charts/otelcol-gpu", "--set", "clusterName=test", "--set", "image.repository=registry.example.com/otelcol-gpu", "--set", strings.Join(values, ",")}
			for _, kind := range []string{"PodMonitor", "ServiceMonitor", "PrometheusRule"} {
				args = append(args, "--api-versions", "monitoring.coreos.com/v1/"+kind)
			}
			cmd := exec.CommandContext(t.Context(), "bin/clients/helm4/helm", args...)
			cmd.Dir = root
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			text, err := cmd.Output()
			require.NoError(t, err, "%s (run scripts/kubernetes-clients)", stderr.String())
			read := 0
			for _, document := range strings.Split(string(text), "\n---\n") {
				var meta struct{ APIVersion, Kind string }
				require.NoError(t, yaml.Unmarshal([]byte(document), &meta))
				if !strings.HasPrefix(meta.APIVersion, "monitoring.coreos.com/") {
					continue
				}
				objects := map[string]any{
					"PodMonitor": &monitoringv1.PodMonitor{}, "ServiceMonitor": &monitoringv1.ServiceMonitor{}, "PrometheusRule": &monitoringv1.PrometheusRule{},
				}
				object := objects[meta.Kind]
				require.NotNil(t, object, meta.Kind)
				assert.NoError(t, yaml.UnmarshalStrict([]byte(document), object), meta.Kind)
				wrong := strings.Replace(document, "\nspec:\n", "\nspec:\n  nobodyKnows: this\n", 1)
				assert.ErrorContains(t, yaml.UnmarshalStrict([]byte(wrong), object), "nobodyKnows")
				read++
			}
			assert.NotZero(t, read)
		})
	}
}
