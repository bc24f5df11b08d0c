// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// fakeAPI serves nodes, ResourceSlices and ResourceClaims as a Kubernetes API
// server does, as far as the receiver asks for them: list and watch with field
// selectors, and get.
type fakeAPI struct {
	server *httptest.Server

	mu      sync.Mutex
	nodes   []*corev1.Node
	slices  []*resourcev1.ResourceSlice
	claims  map[string]*resourcev1.ResourceClaim
	watches map[chan string]string // events of a kind
	asked   []string               // URLs
	status  map[string]int         // of every answer about a kind, if not 0
	gone    bool
	hangs   chan struct{} // answers wait for it, if not nil
}

func newFakeAPI(t *testing.T) *fakeAPI {
	a := &fakeAPI{claims: map[string]*resourcev1.ResourceClaim{}, watches: map[chan string]string{}, status: map[string]int{}}
	a.server = httptest.NewServer(a)
	t.Cleanup(a.server.Close)
	return a
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	kind := parts[len(parts)-1]
	if len(parts) > 2 && parts[len(parts)-2] == "resourceclaims" {
		kind = "resourceclaims"
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, r.URL.String())
	if a.hangs != nil {
		hangs := a.hangs
		a.mu.Unlock()
		select {
		case <-hangs:
		case <-r.Context().Done():
		}
		a.mu.Lock()
	}
	if a.gone {
		panic(http.ErrAbortHandler)
	}
	query := r.URL.Query()
	selector, err := fields.ParseSelector(query.Get("fieldSelector"))
	status := a.status[kind]
	switch {
	case err != nil:
		a.fail(w, http.StatusBadRequest)
	case status != 0:
		a.fail(w, status)
	case query.Get("watch") != "":
		a.watch(w, r, kind)
	case kind == "nodes":
		list := corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for _, n := range a.nodes {
			if selector.Matches(fields.Set{"metadata.name": n.Name}) {
				list.Items = append(list.Items, *n)
			}
		}
		a.send(w, r, &list)
	case kind == "resourceslices":
		list := resourcev1.ResourceSliceList{TypeMeta: metav1.TypeMeta{Kind: "ResourceSliceList", APIVersion: "resource.k8s.io/v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for _, s := range a.slices {
			if selector.Matches(fields.Set{"spec.nodeName": *s.Spec.NodeName}) {
				list.Items = append(list.Items, *s)
			}
		}
		a.send(w, r, &list)
	case kind == "resourceclaims" && a.claims[parts[len(parts)-3]+"/"+parts[len(parts)-1]] != nil:
		claim := *a.claims[parts[len(parts)-3]+"/"+parts[len(parts)-1]]
		claim.TypeMeta = metav1.TypeMeta{Kind: "ResourceClaim", APIVersion: "resource.k8s.io/v1"}
		a.send(w, r, &claim)
	default:
		a.fail(w, http.StatusNotFound)
	}
}

// send writes an object as the client prefers it: as protobuf.
func (a *fakeAPI) send(w http.ResponseWriter, r *http.Request, object runtime.Object) {
	if !strings.HasPrefix(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
		a.fail(w, http.StatusNotAcceptable)
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	_ = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, w)
}

func (a *fakeAPI) fail(w http.ResponseWriter, status int) {
	reasons := map[int]metav1.StatusReason{
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
		http.StatusInternalServerError: metav1.StatusReasonInternalError,
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(status), Reason: reasons[status],
	})
}

// watch is called with the lock held, and holds it but while it waits.
func (a *fakeAPI) watch(w http.ResponseWriter, r *http.Request, kind string) {
	events := make(chan string, 100)
	a.watches[events] = kind
	defer delete(a.watches, events)
	w.Header().Set("Content-Type", "application/json")
	w.(http.Flusher).Flush()
	a.mu.Unlock()
	defer a.mu.Lock()
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-events:
			if _, err := fmt.Fprintln(w, event); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}
}

// event tells those who watch a kind. An object that changes says so itself.
func (a *fakeAPI) event(t *testing.T, kind, event string, object any) {
	t.Helper()
	raw, err := json.Marshal(object)
	require.NoError(t, err)
	a.mu.Lock()
	defer a.mu.Unlock()
	for events, of := range a.watches {
		if of == kind {
			events <- fmt.Sprintf(`{"type":%q,"object":%s}`, event, raw)
		}
	}
}

func (a *fakeAPI) set(f func(*fakeAPI)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(a)
}

func (a *fakeAPI) watching(kind string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, of := range a.watches {
		if of == kind {
			return true
		}
	}
	return false
}
