// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes has the probes of the API server and of the rights in it.
package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/kube"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
)

const (
	draMinor    = 34 // resource.k8s.io/v1
	kubeletSkew = 3  // minors that a kubelet may be behind its API server
)

// Probe asks the API server for its version, its time and the node.
func Probe(ctx context.Context, env probe.Env) []probe.Result {
	r := probe.Result{Subject: "API server"}
	if env.Kube.Unused != "" {
		r.Status, r.Seen = probe.Skipped, env.Kube.Unused
		return []probe.Result{r}
	}
	version, a, err := env.Kube.Version(ctx)
	if err != nil {
		return []probe.Result{unreached(r, err)}
	}
	r.Status, r.Seen = probe.OK, version.GitVersion
	major, _ := strconv.Atoi(version.Major)
	minor := minorOf(version.Minor)
	switch {
	case major == 1 && minor < kube.OldestMinor:
		r.Status, r.Remedy = probe.Fail, fmt.Sprintf("use Kubernetes 1.%d or newer: older kubelets do not list the devices", kube.OldestMinor)
	case major == 1 && minor < draMinor:
		r.Seen += fmt.Sprintf("; before 1.%d devices of DRA are not seen", draMinor)
	}
	results := append([]probe.Result{r}, probe.Clock("the API server", a)...)
	return append(results, node(ctx, env, minor)...)
}

// unreached is why the API gave no answer.
func unreached(r probe.Result, err error) probe.Result {
	r.Status, r.Seen = probe.Fail, kube.Why(err)
	switch {
	case errors.Is(err, k8sclient.ErrNotInCluster):
		r.Remedy = "run it in the collector's pod (kubectl exec -n otelcol-gpu ds/otelcol-gpu-agent -- gpuctl doctor), leave automountServiceAccountToken on, or set K8S_AUTH_TYPE=kubeConfig and KUBECONFIG"
	case apierrors.IsUnauthorized(err):
		r.Remedy = "the credentials are not valid: an expired token, or one of another cluster"
	case apierrors.IsForbidden(err):
		r.Remedy = "see rbac; with --as, you need the right to impersonate"
	default:
		r.Remedy = "check that the address of the API server is reached from here (NetworkPolicy, proxy, KUBECONFIG and its context)"
	}
	return r
}

// node looks at the object of the node that this is.
func node(ctx context.Context, env probe.Env, serverMinor int) []probe.Result {
	name := env.Config.NodeName()
	if name == "" {
		return nil
	}
	r := probe.Result{Subject: "node " + name, Status: probe.OK}
	nodes, err := env.Kube.Nodes(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	switch {
	case err != nil:
		r.Status, r.Seen, r.Remedy = probe.Skipped, "cannot be read: "+kube.Why(err), "see rbac"
		return []probe.Result{r}
	case len(nodes) == 0:
		r.Status, r.Seen, r.Remedy = probe.Fail, "there is no node of this name", "K8S_NODE_NAME must come from fieldRef spec.nodeName: with another name no pod and no exporter is found"
		return []probe.Result{r}
	}
	kubelet := nodes[0].Status.NodeInfo.KubeletVersion
	r.Seen = "kubelet " + kubelet
	if parts := strings.SplitN(strings.TrimPrefix(kubelet, "v"), ".", 3); len(parts) == 3 && parts[0] == "1" {
		switch minor := minorOf(parts[1]); {
		case minor > serverMinor || minor < serverMinor-kubeletSkew:
			r.Status, r.Remedy = probe.Warn, "Kubernetes supports kubelets as new as the API server and up to three minors older: upgrade the older of the two"
		case minor < kube.OldestMinor:
			r.Status, r.Remedy = probe.Fail, fmt.Sprintf("use a kubelet of 1.%d or newer", kube.OldestMinor)
		}
	}
	return append([]probe.Result{r}, shared(ctx, env, name)...)
}

// minorOf reads a minor version as in 27 and 27+.
func minorOf(s string) int {
	n, _ := strconv.Atoi(strings.TrimRight(s, "+"))
	return n
}
