// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

type m = map[string]any

// apiMode is how the API server behaves.
type apiMode int

const (
	apiWell    apiMode = iota
	apiAway            // nothing listens
	apiHangs           // requests are taken and never answered, watches say nothing
	apiFails           // 500
	apiGarbles         // 200 with something that is not JSON
)

// kubeAPI is as much of a Kubernetes API server as agents and gateway use: pods
// and nodes, to list and to watch. Other kinds do not exist on it. What is real
// about an API server is tested in testbed/kubernetes; this one breaks on
// command.
type kubeAPI struct {
	addr string

	mu      sync.Mutex // guards what follows; never held over I/O
	version int
	objects map[string]m // by kind/namespace/name
	history []apiChange  // since forgotten
	expired int          // watches from before this version are told 410
	mode    apiMode
	watches int           // that are open
	changed chan struct{} // closed and replaced with every change
	server  *http.Server
}

type apiChange struct {
	version int
	kind    string // of watch event
	key     string
	object  m
}

// newKubeAPI listens on a port. Close ends it.
func newKubeAPI(port int) (*kubeAPI, error) {
	a := &kubeAPI{addr: address(port), version: 1, objects: map[string]m{}, changed: make(chan struct{})}
	return a, a.open()
}

// Close ends the server.
func (a *kubeAPI) Close() { a.shut() }

// Kubeconfig writes a kubeconfig.
func (a *kubeAPI) Kubeconfig(path string) error {
	text, err := json.Marshal(m{
		"apiVersion": "v1", "kind": "Config", "current-context": "chaos",
		"clusters": []m{{"name": "chaos", "cluster": m{"server": "http://" + a.addr}}},
		"users":    []m{{"name": "chaos", "user": m{}}},
		"contexts": []m{{"name": "chaos", "context": m{"cluster": "chaos", "user": "chaos"}}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// Set changes how the server behaves from now on; what is under way is cut off.
func (a *kubeAPI) Set(mode apiMode) error {
	a.mu.Lock()
	a.mode = mode
	a.mu.Unlock()
	a.shut()
	if mode == apiAway {
		return nil
	}
	return a.open()
}

// Expire forgets the history, so that whoever watches has to list anew.
func (a *kubeAPI) Expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	a.expired, a.history = a.version, nil
	a.tell()
}

func (a *kubeAPI) open() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server != nil {
		return nil
	}
	l, err := net.Listen("tcp", a.addr)
	if err != nil {
		return err
	}
	a.server = &http.Server{Handler: a, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func(s *http.Server) { _ = s.Serve(l) }(a.server) // ends with shut
	return nil
}

func (a *kubeAPI) shut() {
	a.mu.Lock()
	server := a.server
	a.server = nil
	a.mu.Unlock()
	if server != nil {
		_ = server.Close()
	}
}

// tell wakes the watches.
func (a *kubeAPI) tell() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// Put creates or changes an object: of kind pods or nodes.
func (a *kubeAPI) Put(kind, namespace, name string, object m) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := kind + "/" + namespace + "/" + name
	what := "MODIFIED"
	if a.objects[key] == nil {
		what = "ADDED"
	}
	a.change(what, key, object)
	a.objects[key] = object
}

// Delete removes an object.
func (a *kubeAPI) Delete(kind, namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := kind + "/" + namespace + "/" + name
	if object := a.objects[key]; object != nil {
		delete(a.objects, key)
		a.change("DELETED", key, clone(object))
	}
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

func (a *kubeAPI) change(what, key string, object m) {
	a.version++
	object["metadata"].(m)["resourceVersion"] = fmt.Sprint(a.version)
	a.history = append(a.history, apiChange{a.version, what, key, object})
	if len(a.history) > 10_000 {
		a.expired = a.history[5000].version
		a.history = append([]apiChange(nil), a.history[5001:]...)
	}
	a.tell()
}

// ServeHTTP answers lists and watches of pods and nodes, and 404 for the rest.
func (a *kubeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	mode := a.mode
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch mode {
	case apiHangs:
		<-r.Context().Done()
		return
	case apiFails:
		apiStatus(w, http.StatusInternalServerError, "InternalError")
		return
	case apiGarbles:
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
	case !ok || kind != "pods" && kind != "nodes":
		apiStatus(w, http.StatusNotFound, "NotFound")
	case query.Get("sendInitialEvents") != "":
		apiStatus(w, http.StatusBadRequest, "BadRequest") // the client lists instead
	case query.Get("watch") != "":
		from := 0
		_, _ = fmt.Sscan(query.Get("resourceVersion"), &from)
		a.watch(r.Context(), w, kind+"/", from, matches)
	default:
		a.list(w, kind, matches)
	}
}

func (a *kubeAPI) list(w io.Writer, kind string, matches func(m) bool) {
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

// Watches is how many are open. Who lost one lists anew after a pause, and knows
// nothing new until then.
func (a *kubeAPI) Watches() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.watches
}

func (a *kubeAPI) count(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watches += n
}

// watch writes what changes until the client or the server goes.
func (a *kubeAPI) watch(ctx context.Context, w http.ResponseWriter, prefix string, from int, matches func(m) bool) {
	a.count(1)
	defer a.count(-1)
	w.WriteHeader(http.StatusOK)
	out := json.NewEncoder(w)
	flush := http.NewResponseController(w).Flush
	for {
		a.mu.Lock()
		var news []apiChange
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
	return m{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "as the test says"}
}

func apiStatus(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(statusOf(code, reason))
}
