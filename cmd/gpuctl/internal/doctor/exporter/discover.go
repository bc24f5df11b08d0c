// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/kube"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
)

// discover finds the exporters on the node.
func discover(ctx context.Context, api *kube.Client, k *config.Discovery, as exporter) ([]exporter, []probe.Result) {
	r := probe.Result{Subject: "on node " + k.NodeName, Status: probe.Fail}
	if k.NodeName == "" {
		r.Subject, r.Seen, r.Remedy = "discovery", as.receiver+"::kubernetes::node_name is empty", "give the pod K8S_NODE_NAME from fieldRef spec.nodeName"
		return nil, []probe.Result{r}
	}
	if api.Unused != "" {
		r.Status, r.Seen = probe.Skipped, api.Unused
		return nil, []probe.Result{r}
	}
	options := metav1.ListOptions{FieldSelector: "spec.nodeName=" + k.NodeName, LabelSelector: k.LabelSelector, Limit: kube.MaxPods}
	namespaces := k.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var all []exporter
	for _, namespace := range namespaces {
		pods, err := api.Pods(ctx, namespace, options)
		if err != nil {
			r.Seen, r.Remedy = "its pods cannot be listed: "+kube.Why(err), "see kubernetes and rbac"
			return nil, []probe.Result{r}
		}
		for _, p := range pods {
			all = append(all, targets(k, &p, as)...)
		}
	}
	if len(all) == 0 {
		program, install := "a dcgm-exporter", "install one (gpu-operator, or the chart's dcgm-exporter.enabled)"
		if kind := kindByType(as.receiver); kind != nil {
			// A node of another vendor has none, and the receiver is silent there.
			r.Status, program, install = probe.Skipped, kind.Exporter.Program, "on a node with such devices install one"
		}
		r.Seen = "no running pod of " + program
		r.Remedy = fmt.Sprintf("kubectl get pods -A -o wide --field-selector spec.nodeName=%s; %s, or set %[3]s::kubernetes::label_selector and port to what yours has", k.NodeName, install, as.receiver)
		if k.LabelSelector != "" {
			r.Remedy = as.receiver + "::kubernetes::label_selector chooses no pod of this node: " + r.Remedy
		}
		return nil, []probe.Result{r}
	}
	return all, nil
}

// targets are the pod's exporters: those on the port, or in a container that
// declares none. as is how they are asked; the receiver has the same rules.
func targets(k *config.Discovery, p *corev1.Pod, as exporter) []exporter {
	if p.Status.Phase != corev1.PodRunning || p.Status.PodIP == "" || k.LabelSelector == "" && !namedExporter(as.receiver, p.Labels) {
		return nil
	}
	ports, declared := []int{k.Port}, false
	if k.Port == 0 {
		ports[0] = exporterOf(as.receiver).Port
		if kind := kindByType(as.receiver); kind != nil && len(kind.OtherPorts) > 0 {
			ports, declared = append(ports, kind.OtherPorts...), true
		}
	}
	var all []exporter
	add := func(port int, image string) {
		scrape := as.page.Scrape
		address := url.URL{Scheme: scrape.Scheme, Host: net.JoinHostPort(p.Status.PodIP, strconv.Itoa(port)), Path: scrape.MetricsPath, RawQuery: url.Values(scrape.Params).Encode()}
		e := exporter{receiver: as.receiver, url: address.String(), version: kube.TagOf(image), client: as.client, page: as.page}
		if !slices.ContainsFunc(all, func(o exporter) bool { return o.url == e.url }) {
			all = append(all, e)
		}
	}
	for _, c := range p.Spec.Containers {
		if len(c.Ports) == 0 && !declared {
			add(ports[0], c.Image)
		}
		for _, port := range c.Ports {
			if slices.Contains(ports, int(port.ContainerPort)) {
				add(int(port.ContainerPort), c.Image)
			}
		}
	}
	return all
}

func namedExporter(receiver string, labels map[string]string) bool {
	if kind := kindByType(receiver); kind != nil {
		return kind.Finds(labels)
	}
	for _, key := range []string{"app", "app.kubernetes.io/name", "k8s-app"} {
		if strings.Contains(labels[key], "dcgm-exporter") {
			return true
		}
	}
	return false
}
