// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPorts: which container of a pod is taken for the exporter. The rest is tested with
// the dcgm receiver.
func TestPorts(t *testing.T) {
	several, strict, apart := acme, acme, acme
	several.OtherPorts, strict.SharedPods = []int{5001}, ".*acme-exporter.*"
	apart.SharedPods = ".*acme-operator.*"
	const own, none, selected = "10.0.0.1:5000", "", "app=x"
	for name, c := range map[string]struct {
		exporter Exporter
		config   KubernetesConfig
		port     string // that the container declares
		want     string
	}{
		"declared":                        {acme, KubernetesConfig{}, "5000", own},
		"none":                            {acme, KubernetesConfig{}, "", own},
		"another":                         {acme, KubernetesConfig{}, "5001", none},
		"one of several":                  {several, KubernetesConfig{}, "5001", "10.0.0.1:5001"},
		"none of several":                 {several, KubernetesConfig{}, "", none},
		"several, and a configured one":   {several, KubernetesConfig{Port: 7000}, "5001", none},
		"it has to be declared":           {strict, KubernetesConfig{}, "5000", own},
		"and is not":                      {strict, KubernetesConfig{}, "", none},
		"but for pods that were selected": {strict, KubernetesConfig{LabelSelector: selected}, "", own},
		"and for those of another label":  {apart, KubernetesConfig{}, "", own},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := defaultConfig()
			c.config.NodeName = "n"
			cfg.Kubernetes = &c.config
			prom, err := cfg.Prometheus(&c.exporter)
			require.NoError(t, err)
			address := "10.0.0.1"
			if c.port != "" {
				address += ":" + c.port
			}
			b := labels.NewBuilder(labels.FromMap(map[string]string{
				"__meta_kubernetes_pod_phase": "Running", "__meta_kubernetes_pod_ip": "10.0.0.1", "__address__": address,
				"__meta_kubernetes_pod_label_app": "acme-exporter", "__meta_kubernetes_pod_container_port_number": c.port,
			}))
			got := ""
			if relabel.ProcessBuilder(b, prom.ScrapeConfigs[0].RelabelConfigs...) {
				got = b.Get("__address__")
			}
			assert.Equal(t, c.want, got)
		})
	}
}
