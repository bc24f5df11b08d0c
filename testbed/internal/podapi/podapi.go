// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package podapi is as much of a Kubernetes API server as an agent needs: the
// pods of one node, which never change. It refuses everything else, as an API
// server refuses a service account without rights. testbed/kubernetes has a real
// one.
package podapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"time"
)

type m = map[string]any

// API serves the pods of Node.
type API struct {
	Node  string
	items []m
}

// Add adds a running pod that was created just now, with its address. Its uid is
// its name and "-uid". Metadata and containers are added to what every pod has;
// without containers it has one without ports.
func (a *API) Add(namespace, name string, metadata m, ip string, containers ...m) {
	meta := m{"namespace": namespace, "name": name, "uid": name + "-uid", "creationTimestamp": time.Now().UTC().Format(time.RFC3339)}
	maps.Copy(meta, metadata)
	if len(containers) == 0 {
		containers = []m{{"name": "main", "image": "i"}}
	}
	a.items = append(a.items, m{
		"apiVersion": "v1", "kind": "Pod", "metadata": meta,
		"spec":   m{"nodeName": a.Node, "containers": containers},
		"status": m{"phase": "Running", "podIP": ip, "startTime": meta["creationTimestamp"], "conditions": []m{{"type": "Ready", "status": "True"}}},
	})
}

func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	switch {
	case r.URL.Path != "/api/v1/pods" || query.Get("fieldSelector") != "spec.nodeName="+a.Node:
		refuse(w, http.StatusForbidden)
	case query.Get("sendInitialEvents") != "":
		refuse(w, http.StatusBadRequest) // the client lists instead
	case query.Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	default:
		_ = json.NewEncoder(w).Encode(m{"apiVersion": "v1", "kind": "PodList", "metadata": m{"resourceVersion": "1"}, "items": a.items})
	}
}

func refuse(w http.ResponseWriter, code int) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(m{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code})
}

// Kubeconfig writes a file for KUBECONFIG that leads to url.
func Kubeconfig(path, url string) error {
	text, err := json.Marshal(m{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []m{{"name": "test", "cluster": m{"server": url}}},
		"users":    []m{{"name": "test", "user": m{}}},
		"contexts": []m{{"name": "test", "context": m{"cluster": "test", "user": "test"}}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
