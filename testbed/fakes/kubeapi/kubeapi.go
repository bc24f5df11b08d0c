// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubeapi is as much of a Kubernetes API server as agents and gateways use:
// pods and nodes, to list and to watch. testbed/kubernetes has a real one; this one
// breaks on command.
package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

type m = map[string]any

// Mode is how the API server behaves.
type Mode int

const (
	Well    Mode = iota
	Away         // nothing listens
	Hangs        // requests are accepted and never answered, watches stay silent
	Fails        // 500
	Garbles      // 200 with something that is not JSON
)

// API is the API server, an http.Handler. Its methods may be called concurrently.
type API struct {
	node string

	mu      sync.Mutex // guards what follows; never held over I/O
	version int
	objects map[string]m // by kind/namespace/name
	history []change     // since the last one that was dropped
	expired int          // watches from before this version get 410
	mode    Mode
	watches int           // that are open
	changed chan struct{} // closed and replaced with every change
}

type change struct {
	version int
	kind    string // of watch event
	key     string
	object  m
}

// New makes an API without objects. With a node, only the pods of that node may be
// read, as by a service account without other rights; without one, all pods and nodes.
func New(node string) *API {
	return &API{node: node, version: 1, objects: map[string]m{}, changed: make(chan struct{})}
}

// Node is the node that the API was made for.
func (a *API) Node() string { return a.node }

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

// Expire drops the history, so that clients which watch have to list again.
func (a *API) Expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	a.expired, a.history = a.version, nil
	a.wake()
}

func (a *API) behave(mode Mode) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mode = mode
}

// wake wakes the watches.
func (a *API) wake() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// Put creates or changes an object: of kind pods or nodes.
func (a *API) Put(kind, namespace, name string, object m) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := kind + "/" + namespace + "/" + name
	what := "MODIFIED"
	if a.objects[key] == nil {
		what = "ADDED"
	}
	a.record(what, key, object)
	a.objects[key] = object
}

// Delete removes an object.
func (a *API) Delete(kind, namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := kind + "/" + namespace + "/" + name
	if object := a.objects[key]; object != nil {
		delete(a.objects, key)
		a.record("DELETED", key, clone(object))
	}
}

// AddPod adds a running pod of the API's node, created just now, with its address.
// Its uid is its name and "-uid". Metadata and containers are added to what every pod
// has; without containers it has one without ports.
func (a *API) AddPod(namespace, name string, metadata m, ip string, containers ...m) {
	meta := m{"namespace": namespace, "name": name, "uid": name + "-uid", "creationTimestamp": time.Now().UTC().Format(time.RFC3339)}
	maps.Copy(meta, metadata)
	if len(containers) == 0 {
		containers = []m{{"name": "main", "image": "i"}}
	}
	a.Put("pods", namespace, name, m{
		"apiVersion": "v1", "kind": "Pod", "metadata": meta,
		"spec":   m{"nodeName": a.node, "containers": containers},
		"status": m{"phase": "Running", "podIP": ip, "startTime": meta["creationTimestamp"], "conditions": []m{{"type": "Ready", "status": "True"}}},
	})
}

// Has reports whether there is such an object: of kind pods or nodes.
func (a *API) Has(kind, namespace, name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.objects[kind+"/"+namespace+"/"+name] != nil
}

// clone copies an object down to its metadata, where the version is.
func clone(object m) m {
	out, meta := m{}, m{}
	for k, v := range object {
		out[k] = v
	}
	for k, v := range object["metadata"].(m) {
		meta[k] = v
	}
	out["metadata"] = meta
	return out
}

func (a *API) record(what, key string, object m) {
	a.version++
	object["metadata"].(m)["resourceVersion"] = fmt.Sprint(a.version)
	a.history = append(a.history, change{a.version, what, key, object})
	if len(a.history) > 10_000 {
		a.expired = a.history[5000].version
		a.history = append([]change(nil), a.history[5001:]...)
	}
	a.wake()
}

// ServeHTTP answers lists and watches of pods and nodes, and 404 for the rest.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	mode := a.mode
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch mode {
	case Hangs:
		<-r.Context().Done()
		return
	case Fails:
		refuse(w, http.StatusInternalServerError, "InternalError")
		return
	case Garbles:
		_, _ = io.WriteString(w, `{"kind": "PodList", "items": [{"metadata": 7}`)
		return
	}
	query := r.URL.Query()
	kind, ok := strings.CutPrefix(r.URL.Path, "/api/v1/")
	field, value, _ := strings.Cut(query.Get("fieldSelector"), "=")
	matches := func(object m) bool {
		switch field {
		case "spec.nodeName":
			spec, _ := object["spec"].(m)
			return spec["nodeName"] == value
		case "metadata.name":
			return object["metadata"].(m)["name"] == value
		}
		return true
	}
	switch {
	case a.node != "" && (r.URL.Path != "/api/v1/pods" || field != "spec.nodeName" || value != a.node):
		refuse(w, http.StatusForbidden, "Forbidden")
	case !ok || kind != "pods" && kind != "nodes":
		refuse(w, http.StatusNotFound, "NotFound")
	case query.Get("sendInitialEvents") != "":
		refuse(w, http.StatusBadRequest, "BadRequest") // the client lists instead
	case query.Get("watch") != "":
		from := 0
		_, _ = fmt.Sscan(query.Get("resourceVersion"), &from)
		a.watch(r.Context(), w, kind+"/", from, matches)
	default:
		a.list(w, kind, matches)
	}
}

func (a *API) list(w io.Writer, kind string, matches func(m) bool) {
	a.mu.Lock()
	items := []m{}
	for key, object := range a.objects {
		if strings.HasPrefix(key, kind+"/") && matches(object) {
			items = append(items, clone(object))
		}
	}
	version := fmt.Sprint(a.version)
	a.mu.Unlock()
	list := map[string]string{"pods": "PodList", "nodes": "NodeList"}[kind]
	_ = json.NewEncoder(w).Encode(m{"apiVersion": "v1", "kind": list, "metadata": m{"resourceVersion": version}, "items": items})
}

// Watches is how many are open. A client that lost one lists again after a pause, and
// learns nothing new until then.
func (a *API) Watches() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.watches
}

func (a *API) count(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watches += n
}

// watch writes what changes until the client or the server goes.
func (a *API) watch(ctx context.Context, w http.ResponseWriter, prefix string, from int, matches func(m) bool) {
	a.count(1)
	defer a.count(-1)
	w.WriteHeader(http.StatusOK)
	out := json.NewEncoder(w)
	flush := http.NewResponseController(w).Flush
	for {
		a.mu.Lock()
		var news []change
		gone := from < a.expired
		for _, c := range a.history {
			if c.version > from && strings.HasPrefix(c.key, prefix) && matches(c.object) {
				news = append(news, c)
			}
		}
		from = max(from, a.version)
		changed := a.changed
		a.mu.Unlock()
		if gone {
			_ = out.Encode(m{"type": "ERROR", "object": statusOf(http.StatusGone, "Expired")})
			return
		}
		for _, c := range news {
			if out.Encode(m{"type": c.kind, "object": c.object}) != nil {
				return
			}
		}
		if flush() != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

func statusOf(code int, reason string) m {
	return m{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "as the test has it"}
}

func refuse(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(statusOf(code, reason))
}
