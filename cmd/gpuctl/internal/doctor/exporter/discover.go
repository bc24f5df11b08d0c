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
		r.Subject, r.Seen, r.Remedy = "discovery", "dcgm::kubernetes::node_name is empty", "give the pod K8S_NODE_NAME from fieldRef spec.nodeName"
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
		r.Seen = "no running pod of a dcgm-exporter"
		r.Remedy = fmt.Sprintf("kubectl get pods -A -o wide --field-selector spec.nodeName=%s; install one (gpu-operator, or the chart's dcgm-exporter.enabled), or set dcgm::kubernetes::label_selector and port to what yours has", k.NodeName)
		if k.LabelSelector != "" {
			r.Remedy = "dcgm::kubernetes::label_selector chooses no pod of this node: " + r.Remedy
		}
		return nil, []probe.Result{r}
	}
	return all, nil
}

// targets are the pod's exporters: those on the port, or in a container that
// declares none. as is how they are asked; the receiver has the same rules.
func targets(k *config.Discovery, p *corev1.Pod, as exporter) []exporter {
	if p.Status.Phase != corev1.PodRunning || p.Status.PodIP == "" || k.LabelSelector == "" && !namedExporter(p.Labels) {
		return nil
	}
	port := k.Port
	if port == 0 {
		port = 9400
	}
	var all []exporter
	for _, c := range p.Spec.Containers {
		if len(c.Ports) > 0 && !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return int(p.ContainerPort) == port }) {
			continue
		}
		scrape := as.page.Scrape
		address := url.URL{Scheme: scrape.Scheme, Host: net.JoinHostPort(p.Status.PodIP, strconv.Itoa(port)), Path: scrape.MetricsPath, RawQuery: url.Values(scrape.Params).Encode()}
		e := exporter{url: address.String(), version: kube.TagOf(c.Image), client: as.client, page: as.page}
		if !slices.ContainsFunc(all, func(o exporter) bool { return o.url == e.url }) {
			all = append(all, e)
		}
	}
	return all
}

func namedExporter(labels map[string]string) bool {
	for _, key := range []string{"app", "app.kubernetes.io/name", "k8s-app"} {
		if strings.Contains(labels[key], "dcgm-exporter") {
			return true
		}
	}
	return false
}
