// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// KubernetesConfig finds the exporter's pod on one node through the Kubernetes
// API (role pod, field selector on the node's name), so that an agent talks to
// its own exporter alone. It needs list and watch on pods.
type KubernetesConfig struct {
	// NodeName is the node of this agent: ${env:K8S_NODE_NAME}. Required.
	NodeName string `mapstructure:"node_name"`
	// Namespaces limits the search; empty means all.
	Namespaces []string `mapstructure:"namespaces"`
	// LabelSelector chooses the exporter's pods. Empty means every pod where the label
	// app, app.kubernetes.io/name or k8s-app names the exporter as its vendor's charts
	// and operators do.
	LabelSelector string `mapstructure:"label_selector"`
	// Port is the exporter's port. Default: the one that it listens on by default.
	Port int `mapstructure:"port"`
	// KubeconfigFile is for running outside of the cluster. Empty means the pod's
	// service account.
	KubeconfigFile string `mapstructure:"kubeconfig_file"`
}

func (k *KubernetesConfig) check() error {
	var errs []error
	if k.NodeName == "" {
		errs = append(errs, errors.New("kubernetes::node_name: is empty: set it to ${env:K8S_NODE_NAME} and give the pod that variable from spec.nodeName"))
	}
	if k.Port < 0 || k.Port > 65535 {
		errs = append(errs, fmt.Errorf("kubernetes::port: is %d: use 1 to 65535", k.Port))
	}
	if k.KubeconfigFile != "" {
		// Prometheus would only log it, and find nothing.
		if _, err := os.Stat(k.KubeconfigFile); err != nil {
			errs = append(errs, fmt.Errorf("kubernetes::kubeconfig_file: %w: correct the path, or leave it out to use the pod's service account", err))
		}
	}
	return errors.Join(errs...)
}

// discovery is the part of the scrape_config that finds targets.
func (k *KubernetesConfig) discovery(e *Exporter) map[string]any {
	selector := map[string]any{"role": "pod", "field": "spec.nodeName=" + k.NodeName}
	if k.LabelSelector != "" {
		selector["label"] = k.LabelSelector
	}
	sd := map[string]any{"role": "pod", "selectors": []any{selector}}
	if len(k.Namespaces) > 0 {
		sd["namespaces"] = map[string]any{"names": k.Namespaces}
	}
	if k.KubeconfigFile != "" {
		sd["kubeconfig_file"] = k.KubeconfigFile
	}
	return map[string]any{
		"kubernetes_sd_configs": []any{sd},
		"relabel_configs":       k.relabel(e),
	}
}

func (k *KubernetesConfig) relabel(e *Exporter) []any {
	port := cmp.Or(k.Port, e.Port)
	p := strconv.Itoa(port)
	// The declared port, or a container that declares none, but not where another container
	// of the pod may declare one of several.
	ports := p + "|"
	if k.Port == 0 {
		for _, other := range e.OtherPorts {
			ports = strings.TrimSuffix(ports, "|") + "|" + strconv.Itoa(other)
		}
	}
	rule := func(action, regex string, source ...string) map[string]any {
		return map[string]any{"action": action, "regex": regex, "source_labels": source}
	}
	address := func(regex, replacement string) map[string]any {
		r := rule("replace", regex, "__meta_kubernetes_pod_container_port_number", "__meta_kubernetes_pod_ip")
		r["target_label"], r["replacement"] = "__address__", replacement
		return r
	}
	rules := []any{
		rule("drop", "Pending|Succeeded|Failed|Unknown", "__meta_kubernetes_pod_phase"),
		rule("drop", "true", "__meta_kubernetes_pod_container_init"),
		rule("keep", ports, "__meta_kubernetes_pod_container_port_number"),
		address(";([^:]+)", "${1}:"+p),
		address(";(.*:.*)", "[${1}]:"+p),
	}
	if k.LabelSelector == "" {
		names := []string{"__meta_kubernetes_pod_label_app", "__meta_kubernetes_pod_label_app_kubernetes_io_name", "__meta_kubernetes_pod_label_k8s_app"}
		rules = append(rules, rule("keep", e.Pods, names...))
		if e.SharedPods != "" {
			rules = append(rules, rule("drop", ";"+e.SharedPods, append([]string{"__meta_kubernetes_pod_container_port_number"}, names...)...))
		}
	}
	return rules
}
