// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
)

const (
	oldestMinor = 23 // the kubelet's GetAllocatableResources
	draMinor    = 34 // resource.k8s.io/v1
	olderKubel  = 3  // minors that a kubelet may be behind its API server
)

func (in *installation) checkKubernetes(ctx context.Context) []Result {
	r := Result{Check: "kubernetes", Subject: "API server"}
	if in.kube.connect == nil {
		r.Status, r.Seen = Skipped, in.kube.unused
		return []Result{r}
	}
	var version struct {
		Major      string `json:"major"`
		Minor      string `json:"minor"`
		GitVersion string `json:"gitVersion"`
	}
	a, err := in.kube.ask(ctx, "/version", nil, nil, &version)
	if err != nil {
		return []Result{unreached(r, err)}
	}
	r.Status, r.Seen = OK, version.GitVersion
	major, _ := strconv.Atoi(version.Major)
	minor := minorOf(version.Minor)
	switch {
	case major == 1 && minor < oldestMinor:
		r.Status, r.Remedy = Fail, fmt.Sprintf("use Kubernetes 1.%d or newer: older kubelets do not say what devices there are", oldestMinor)
	case major == 1 && minor < draMinor:
		r.Seen += fmt.Sprintf("; before 1.%d devices of DRA are not seen", draMinor)
	}
	results := append([]Result{r}, clock("kubernetes", "the API server", a.header, a.asked, a.answered)...)
	return append(results, in.node(ctx, minor)...)
}

// unreached says why the API gave no answer.
func unreached(r Result, err error) Result {
	r.Status, r.Seen = Fail, why(err)
	var refused *apiError
	switch {
	case errors.Is(err, k8sclient.ErrNotInCluster):
		r.Remedy = "run it in the collector's pod (kubectl exec -n otelcol-gpu ds/otelcol-gpu-agent -- gpuctl doctor), leave automountServiceAccountToken on, or set K8S_AUTH_TYPE=kubeConfig and KUBECONFIG"
	case errors.As(err, &refused) && refused.Code == http.StatusUnauthorized:
		r.Remedy = "the credentials are not valid: an expired token, or one of another cluster"
	case errors.As(err, &refused) && refused.Code == http.StatusForbidden:
		r.Remedy = "see rbac; with --as, you need the right to impersonate"
	default:
		r.Remedy = "check that the address of the API server is reached from here (NetworkPolicy, proxy, KUBECONFIG and its context)"
	}
	return r
}

// node looks at the object of the node that this is.
func (in *installation) node(ctx context.Context, serverMinor int) []Result {
	name := in.nodeName()
	if name == "" {
		return nil
	}
	r := Result{Check: "kubernetes", Subject: "node " + name, Status: OK}
	var list struct {
		Items []struct {
			Status struct {
				NodeInfo struct {
					KubeletVersion string `json:"kubeletVersion"`
				} `json:"nodeInfo"`
			} `json:"status"`
		} `json:"items"`
	}
	_, err := in.kube.ask(ctx, "/api/v1/nodes", url.Values{"fieldSelector": {"metadata.name=" + name}}, nil, &list)
	switch {
	case err != nil:
		r.Status, r.Seen, r.Remedy = Skipped, "cannot be read: "+why(err), "see rbac"
		return []Result{r}
	case len(list.Items) == 0:
		r.Status, r.Seen, r.Remedy = Fail, "there is no node of this name", "K8S_NODE_NAME must come from fieldRef spec.nodeName: with another name no pod and no exporter is found"
		return []Result{r}
	}
	kubelet := list.Items[0].Status.NodeInfo.KubeletVersion
	r.Seen = "kubelet " + kubelet
	if parts := strings.SplitN(strings.TrimPrefix(kubelet, "v"), ".", 3); len(parts) == 3 && parts[0] == "1" {
		switch minor := minorOf(parts[1]); {
		case minor > serverMinor || minor < serverMinor-olderKubel:
			r.Status, r.Remedy = Warn, "Kubernetes supports kubelets as new as the API server and up to three minors older: upgrade the older of the two"
		case minor < oldestMinor:
			r.Status, r.Remedy = Fail, fmt.Sprintf("use a kubelet of 1.%d or newer", oldestMinor)
		}
	}
	return []Result{r}
}

// nodeName is the node that the configuration, else the environment names.
func (in *installation) nodeName() string {
	if in.configuration != nil {
		for _, c := range in.allocations() {
			var cfg struct {
				NodeName string `mapstructure:"node_name"`
			}
			if c.read(&cfg) == nil && cfg.NodeName != "" {
				return cfg.NodeName
			}
		}
		for _, d := range in.dcgm() {
			if d.Kubernetes != nil && d.Kubernetes.NodeName != "" {
				return d.Kubernetes.NodeName
			}
		}
	}
	return os.Getenv("K8S_NODE_NAME")
}

// minorOf reads a minor version as in 27 and 27+.
func minorOf(s string) int {
	n, _ := strconv.Atoi(strings.TrimRight(s, "+"))
	return n
}
