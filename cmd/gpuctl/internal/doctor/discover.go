// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// dcgmKubernetes is how the dcgm receiver finds its node's exporter; the same
// rules are in its kubernetes.go.
type dcgmKubernetes struct {
	NodeName      string   `mapstructure:"node_name"`
	Namespaces    []string `mapstructure:"namespaces"`
	LabelSelector string   `mapstructure:"label_selector"`
	Port          int      `mapstructure:"port"`
}

// discover finds the exporters on the node.
func (in *installation) discover(ctx context.Context, k *dcgmKubernetes, as exporter) ([]exporter, []Result) {
	r := Result{Check: "exporter", Subject: "on node " + k.NodeName, Status: Fail}
	if k.NodeName == "" {
		r.Subject, r.Seen, r.Remedy = "discovery", "dcgm::kubernetes::node_name is empty", "give the pod K8S_NODE_NAME from fieldRef spec.nodeName"
		return nil, []Result{r}
	}
	if in.kube.connect == nil {
		r.Status, r.Seen = Skipped, in.kube.unused
		return nil, []Result{r}
	}
	query := url.Values{"fieldSelector": {"spec.nodeName=" + k.NodeName}, "limit": {maxPods}}
	if k.LabelSelector != "" {
		query.Set("labelSelector", k.LabelSelector)
	}
	namespaces := k.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var all []exporter
	for _, namespace := range namespaces {
		path := "/api/v1/pods"
		if namespace != "" {
			path = "/api/v1/namespaces/" + url.PathEscape(namespace) + "/pods"
		}
		var list podList
		if _, err := in.kube.ask(ctx, path, query, nil, &list); err != nil {
			r.Seen, r.Remedy = "its pods cannot be listed: "+why(err), "see kubernetes and rbac"
			return nil, []Result{r}
		}
		for _, p := range list.Items {
			all = append(all, k.targets(p, as)...)
		}
	}
	if len(all) == 0 {
		r.Seen = "no running pod of a dcgm-exporter"
		r.Remedy = fmt.Sprintf("kubectl get pods -A -o wide --field-selector spec.nodeName=%s; install one (gpu-operator, or the chart's dcgm-exporter.enabled), or set dcgm::kubernetes::label_selector and port to what yours has", k.NodeName)
		if k.LabelSelector != "" {
			r.Remedy = "dcgm::kubernetes::label_selector chooses no pod of this node: " + r.Remedy
		}
		return nil, []Result{r}
	}
	return all, nil
}

// targets are the pod's exporters: those on the port, or in a container that
// declares none. as is how they are asked.
func (k *dcgmKubernetes) targets(p pod, as exporter) []exporter {
	if p.Status.Phase != "Running" || p.Status.PodIP == "" || k.LabelSelector == "" && !namedExporter(p.Metadata.Labels) {
		return nil
	}
	port := k.Port
	if port == 0 {
		port = 9400
	}
	var all []exporter
	for _, c := range p.Spec.Containers {
		if len(c.Ports) > 0 && !slices.Contains(c.Ports, containerPort{port}) {
			continue
		}
		scrape := as.page.Scrape
		address := url.URL{Scheme: scrape.Scheme, Host: net.JoinHostPort(p.Status.PodIP, strconv.Itoa(port)), Path: scrape.MetricsPath, RawQuery: url.Values(scrape.Params).Encode()}
		e := exporter{url: address.String(), version: tagOf(c.Image), client: as.client, page: as.page}
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

// tagOf is the tag of an image, or its digest where it has none.
func tagOf(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[i+1:]
	}
	return digest
}
