// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

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
)

// fakeAPI serves pods and ResourceClaims as a Kubernetes API server does, as far
// as the source asks for them: list and watch, of a namespace or of all.
type fakeAPI struct {
	server *httptest.Server

	mu      sync.Mutex
	streams bool // lists within a watch
	pods    []*corev1.Pod
	claims  []*resourcev1.ResourceClaim
	status  map[string]int // of every answer about "kind" or "namespace/kind", if not 0
	gone    bool
	asked   []string
	watches map[chan any]string // what is told, by "namespace/kind"
}

func newFakeAPI(t *testing.T) *fakeAPI {
	a := &fakeAPI{status: map[string]int{}, watches: map[chan any]string{}}
	a.server = httptest.NewServer(a)
	t.Cleanup(a.server.Close)
	return a
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	kind, namespace := parts[len(parts)-1], ""
	if len(parts) > 3 && parts[len(parts)-3] == "namespaces" {
		namespace = parts[len(parts)-2]
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, r.URL.Path)
	if a.gone {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	status := a.status[kind] + a.status[namespace+"/"+kind]
	query := r.URL.Query()
	switch {
	case status != 0:
		fail(w, status)
	case query.Get("sendInitialEvents") != "" && !a.streams:
		fail(w, http.StatusUnprocessableEntity)
	case query.Get("watch") != "":
		a.watch(w, r, namespace, kind)
	case kind == "pods":
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for _, p := range a.pods {
			if namespace == "" || namespace == p.Namespace {
				list.Items = append(list.Items, *p)
			}
		}
		_ = json.NewEncoder(w).Encode(list)
	default:
		list := resourcev1.ResourceClaimList{TypeMeta: metav1.TypeMeta{Kind: "ResourceClaimList", APIVersion: "resource.k8s.io/v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for _, c := range a.claims {
			if namespace == "" || namespace == c.Namespace {
				list.Items = append(list.Items, *c)
			}
		}
		_ = json.NewEncoder(w).Encode(list)
	}
}

func fail(w http.ResponseWriter, status int) {
	reasons := map[int]metav1.StatusReason{
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
		http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(status), Reason: reasons[status],
	})
}

// typed is the object with its kind, as a watch tells it.
func typed(object any) any {
	switch o := object.(type) {
	case *corev1.Pod:
		c := o.DeepCopy()
		c.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
		c.ResourceVersion = "2"
		return c
	case *resourcev1.ResourceClaim:
		c := o.DeepCopy()
		c.TypeMeta = metav1.TypeMeta{Kind: "ResourceClaim", APIVersion: "resource.k8s.io/v1"}
		c.ResourceVersion = "2"
		return c
	}
	return object
}

type event struct {
	Type   string `json:"type"`
	Object any    `json:"object"`
}

// watch is called with the lock held, and holds it but while it waits.
func (a *fakeAPI) watch(w http.ResponseWriter, r *http.Request, namespace, kind string) {
	encoder := json.NewEncoder(w)
	if r.URL.Query().Get("sendInitialEvents") != "" {
		var end any
		if kind == "pods" {
			for _, p := range a.pods {
				_ = encoder.Encode(event{"ADDED", typed(p)})
			}
			end = typed(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
		} else {
			for _, c := range a.claims {
				_ = encoder.Encode(event{"ADDED", typed(c)})
			}
			end = typed(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
		}
		_ = encoder.Encode(event{"BOOKMARK", end})
	}
	events := make(chan any, 100)
	a.watches[events] = namespace + "/" + kind
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

// tell tells those who watch.
func (a *fakeAPI) tell(kind, what string, object any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for events, of := range a.watches {
		if strings.HasSuffix(of, "/"+kind) {
			events <- event{what, typed(object)}
		}
	}
}

func (a *fakeAPI) set(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// watched waits until so many watches are on.
func (a *fakeAPI) watched(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.watches) == n
	}, patience, tick, fmt.Sprint("watches: ", n))
}
