// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pods is as much of a Kubernetes API server as an agent needs: the pods of one
// node, which never change. It refuses everything else, as an API server refuses
// a service account without rights. testbed/kubernetes has a real one.
type pods struct {
	node string
	list []m
}

// pod adds a running pod that was created just now. Its uid is its name and
// "-uid".
func (p *pods) pod(namespace, name string, metadata m, ip string) {
	meta := m{"namespace": namespace, "name": name, "uid": name + "-uid", "creationTimestamp": time.Now().UTC().Format(time.RFC3339)}
	for k, v := range metadata {
		meta[k] = v
	}
	p.list = append(p.list, m{
		"apiVersion": "v1", "kind": "Pod", "metadata": meta,
		"spec":   m{"nodeName": p.node, "containers": []m{{"name": "main", "image": "i"}}},
		"status": m{"phase": "Running", "podIP": ip, "startTime": meta["creationTimestamp"], "conditions": []m{{"type": "Ready", "status": "True"}}},
	})
}

// kubeconfig serves the pods and returns a file for KUBECONFIG.
func (p *pods) kubeconfig(t *testing.T) string {
	t.Helper()
	return kubeconfigOf(t, serve(t, p))
}

// kubeconfigOf is a file for KUBECONFIG that leads to url.
func kubeconfigOf(t *testing.T, url string) string {
	t.Helper()
	text, err := json.Marshal(m{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []m{{"name": "test", "cluster": m{"server": url}}},
		"users":    []m{{"name": "test", "user": m{}}},
		"contexts": []m{{"name": "test", "context": m{"cluster": "test", "user": "test"}}},
	})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

func (p *pods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	switch {
	case r.URL.Path != "/api/v1/pods" || query.Get("fieldSelector") != "spec.nodeName="+p.node:
		refuse(w, http.StatusForbidden)
	case query.Get("sendInitialEvents") != "":
		refuse(w, http.StatusBadRequest) // the client lists instead
	case query.Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	default:
		_ = json.NewEncoder(w).Encode(m{"apiVersion": "v1", "kind": "PodList", "metadata": m{"resourceVersion": "1"}, "items": p.list})
	}
}

func refuse(w http.ResponseWriter, code int) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(m{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code})
}
