// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package k8sfake serves nodes, pods, ResourceSlices and ResourceClaims to tests as
// a Kubernetes API server does, as far as the components ask for them: list and
// watch, of a namespace or of all, with field selectors; lists within a watch; get.
package k8sfake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// The kinds served, as paths name them.
var kinds = map[string]schema.GroupVersionKind{
	"nodes":          corev1.SchemeGroupVersion.WithKind("Node"),
	"pods":           corev1.SchemeGroupVersion.WithKind("Pod"),
	"resourceslices": resourcev1.SchemeGroupVersion.WithKind("ResourceSlice"),
	"deviceclasses":  resourcev1.SchemeGroupVersion.WithKind("DeviceClass"),
	"resourceclaims": resourcev1.SchemeGroupVersion.WithKind("ResourceClaim"),
	// Koordinator's, of a custom resource: objects are unstructured.
	"devices": {Group: "scheduling.koordinator.sh", Version: "v1alpha1", Kind: "Device"},
}

// API is the server. Its methods may be called at any time.
type API struct {
	server *httptest.Server

	mu      sync.Mutex
	objects map[string][]runtime.Object // by kind
	status  map[string]int
	streams bool
	away    bool
	hangs   chan struct{} // answers wait for it, if not nil
	asked   []*url.URL
	watches map[chan event]string // the kind that is watched
}

// New starts an API that has no objects, until the test ends.
func New(t testing.TB) *API {
	a := &API{objects: map[string][]runtime.Object{}, status: map[string]int{}, watches: map[chan event]string{}}
	a.server = httptest.NewServer(a)
	t.Cleanup(a.server.Close)
	return a
}

// URL is where clients find the API.
func (a *API) URL() string { return a.server.URL }

// KubeConfig is the path of a kubeconfig file that leads to the API.
func (a *API) KubeConfig(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
clusters: [{name: test, cluster: {server: %q}}]
users: [{name: test, user: {}}]
`, a.server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Set gives the API these objects of a kind and no others. Watches do not receive them.
func (a *API) Set(kind string, objects ...runtime.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.objects[kind] = objects
}

// Status makes the API answer with status whatever is asked about a kind, or about
// namespace/kind; 0 ends that.
func (a *API) Status(of string, status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status[of] = status
}

// Stream has lists within a watch served, which are declined otherwise.
func (a *API) Stream() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.streams = true
}

// Leave closes every connection, and each new one until Return.
func (a *API) Leave() {
	a.mu.Lock()
	a.away = true
	a.mu.Unlock()
	a.server.CloseClientConnections()
}

// Return ends Leave.
func (a *API) Return() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.away = false
}

// Hang takes requests and answers none, until release is called.
func (a *API) Hang() (release func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	hangs := make(chan struct{})
	a.hangs = hangs
	return func() { close(hangs) }
}

// Asked are the URLs of all requests.
func (a *API) Asked() []*url.URL {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}

// Watching is how many watches of these kinds are on.
func (a *API) Watching(kinds ...string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, kind := range a.watches {
		if slices.Contains(kinds, kind) {
			n++
		}
	}
	return n
}

// Send sends an event to the watches of a kind. An object of the kinds served is sent with its
// type and a resource version, anything else as it is.
func (a *API) Send(kind, what string, object any) {
	e := event{what, object}
	if o, ok := object.(runtime.Object); ok {
		e.Object = typed(kind, o)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for events, of := range a.watches {
		if of == kind {
			events <- e
		}
	}
}

func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, path, ok := strings.Cut(r.URL.Path, "/v1/")
	if !ok {
		_, path, _ = strings.Cut(r.URL.Path, "/v1alpha1/")
	}
	parts, namespace, name := strings.Split(path, "/"), "", ""
	if len(parts) > 2 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	kind := parts[0]
	if len(parts) > 1 {
		name = parts[1]
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, r.URL)
	if hangs := a.hangs; hangs != nil {
		a.mu.Unlock()
		select {
		case <-hangs:
		case <-r.Context().Done():
		}
		a.mu.Lock()
	}
	if a.away {
		panic(http.ErrAbortHandler)
	}
	query := r.URL.Query()
	selector, err := fields.ParseSelector(query.Get("fieldSelector"))
	status := max(a.status[kind], a.status[namespace+"/"+kind])
	objects := a.selected(kind, namespace, name, selector)
	switch {
	case err != nil:
		fail(w, http.StatusBadRequest)
	case status != 0:
		fail(w, status)
	case kinds[kind].Empty(), name != "" && len(objects) == 0:
		fail(w, http.StatusNotFound)
	case query.Get("sendInitialEvents") != "" && !a.streams:
		fail(w, http.StatusUnprocessableEntity)
	case query.Get("watch") != "":
		a.watch(w, r, kind, objects)
	case name != "":
		send(w, r, typed(kind, objects[0]))
	default:
		send(w, r, listOf(kind, objects))
	}
}

// selected are the objects that a request is about: those of namespace, name and
// selector, as far as they are given. It is called with the lock held.
func (a *API) selected(kind, namespace, name string, selector fields.Selector) []runtime.Object {
	var out []runtime.Object
	for _, o := range a.objects[kind] {
		m := o.(metav1.Object)
		if (namespace == "" || namespace == m.GetNamespace()) && (name == "" || name == m.GetName()) &&
			(selector == nil || selector.Matches(fieldsOf(o))) {
			out = append(out, o)
		}
	}
	return out
}

// fieldsOf are the fields that selectors of the components name.
func fieldsOf(o runtime.Object) fields.Set {
	set := fields.Set{"metadata.name": o.(metav1.Object).GetName()}
	switch o := o.(type) {
	case *corev1.Pod:
		set["spec.nodeName"] = o.Spec.NodeName
	case *resourcev1.ResourceSlice:
		if o.Spec.NodeName != nil {
			set["spec.nodeName"] = *o.Spec.NodeName
		}
	}
	return set
}

// typed is the object with its type, as single objects have it.
func typed(kind string, o runtime.Object) runtime.Object {
	o = o.DeepCopyObject()
	o.GetObjectKind().SetGroupVersionKind(kinds[kind])
	if m := o.(metav1.Object); m.GetResourceVersion() == "" {
		m.SetResourceVersion("2")
	}
	return o
}

func listOf(kind string, objects []runtime.Object) runtime.Object {
	gvk := kinds[kind]
	gvk.Kind += "List"
	if !scheme.Scheme.Recognizes(gvk) {
		list := &unstructured.UnstructuredList{}
		for _, o := range objects {
			list.Items = append(list.Items, *o.(*unstructured.Unstructured))
		}
		list.SetGroupVersionKind(gvk)
		list.SetResourceVersion("1")
		return list
	}
	list, err := scheme.Scheme.New(gvk)
	if err == nil {
		err = meta.SetList(list, objects)
	}
	if err != nil {
		panic(err) // of a test that set other objects than the kind requires
	}
	list.GetObjectKind().SetGroupVersionKind(gvk)
	list.(metav1.ListInterface).SetResourceVersion("1")
	return list
}

// send writes an object as the components' clients prefer it: as protobuf, and those of
// custom resources as JSON.
func send(w http.ResponseWriter, r *http.Request, object runtime.Object) {
	if custom, ok := object.(interface{ MarshalJSON() ([]byte, error) }); ok {
		text, err := custom.MarshalJSON()
		if err != nil {
			panic(err) // a test set an object without a kind
		}
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, _ = w.Write(text)
		return
	}
	if !strings.HasPrefix(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
		fail(w, http.StatusNotAcceptable)
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	_ = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, w)
}

func fail(w http.ResponseWriter, status int) {
	reasons := map[int]metav1.StatusReason{
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
		http.StatusUnprocessableEntity: metav1.StatusReasonInvalid, http.StatusInternalServerError: metav1.StatusReasonInternalError,
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(status), Reason: reasons[status],
	})
}

type event struct {
	Type   string `json:"type"`
	Object any    `json:"object"`
}

// watch is called with the lock held, and holds it but while it waits.
func (a *API) watch(w http.ResponseWriter, r *http.Request, kind string, objects []runtime.Object) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	if r.URL.Query().Get("sendInitialEvents") != "" {
		for _, o := range objects {
			_ = encoder.Encode(event{"ADDED", typed(kind, o)})
		}
		_ = encoder.Encode(event{"BOOKMARK", initialEventsEnd(kind)})
	}
	events := make(chan event, 100)
	a.watches[events] = kind
	defer delete(a.watches, events)
	w.(http.Flusher).Flush()
	a.mu.Unlock()
	defer a.mu.Lock()
	for {
		select {
		case <-r.Context().Done():
			return
		case e := <-events:
			if encoder.Encode(e) != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}
}

// initialEventsEnd reports that a list within a watch is complete.
func initialEventsEnd(kind string) runtime.Object {
	o, err := scheme.Scheme.New(kinds[kind])
	if err != nil {
		panic(err) // kinds has what the scheme has not
	}
	o.(metav1.Object).SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return typed(kind, o)
}
