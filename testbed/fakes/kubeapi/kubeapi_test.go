// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

func freeAddress(t *testing.T) string {
	t.Helper()
	ports, err := collector.Free(1)
	require.NoError(t, err)
	return net.JoinHostPort(collector.Loopback, strconv.Itoa(ports[0]))
}

// get is a page, or "" where there is no response in time.
func get(t *testing.T, url string, patience time.Duration) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", 0
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body), response.StatusCode
}

// podNamed is a pod as the API server has it.
func podNamed(name, node string) m {
	return m{"metadata": m{"name": name, "namespace": "n"}, "spec": m{"nodeName": node}}
}

func TestAPI(t *testing.T) {
	a, err := Serve(New(""), freeAddress(t))
	require.NoError(t, err)
	t.Cleanup(a.Close)
	base := a.URL() + "/api/v1/"
	a.Put("pods", "n", "one", podNamed("one", "a"))
	a.Put("pods", "n", "two", podNamed("two", "b"))
	a.Put("nodes", "", "a", m{"metadata": m{"name": "a"}})

	var list struct {
		Kind     string
		Metadata struct{ ResourceVersion string }
		Items    []struct{ Metadata struct{ Name string } }
	}
	text, _ := get(t, base+"pods?fieldSelector=spec.nodeName=a", time.Minute)
	require.NoError(t, json.Unmarshal([]byte(text), &list))
	require.Len(t, list.Items, 1)
	assert.Equal(t, "one", list.Items[0].Metadata.Name)
	assert.Equal(t, "PodList", list.Kind)
	text, _ = get(t, base+"nodes?fieldSelector=metadata.name=a", time.Minute)
	assert.Contains(t, text, `"name":"a"`)
	_, status := get(t, a.URL()+"/apis/resource.k8s.io/v1/resourceclaims", time.Minute)
	assert.Equal(t, http.StatusNotFound, status)
	_, status = get(t, base+"pods?watch=true&sendInitialEvents=true", time.Minute)
	assert.Equal(t, http.StatusBadRequest, status)

	t.Run("a watch gets what changes", func(t *testing.T) {
		events := watching(t, base+"pods?watch=1&fieldSelector=spec.nodeName=a&resourceVersion="+list.Metadata.ResourceVersion)
		a.Put("pods", "n", "three", podNamed("three", "a"))
		a.Put("pods", "n", "two", podNamed("two", "b"))
		a.Delete("pods", "n", "one")
		assert.Equal(t, "ADDED three", <-events)
		assert.Equal(t, "DELETED one", <-events)
		assert.Equal(t, 1, a.Watches())
		a.Expire()
		assert.Equal(t, "ERROR ", <-events)
		assert.Eventually(t, func() bool { return a.Watches() == 0 }, time.Minute, time.Millisecond, "a client that has to list does not watch")
	})
	t.Run("a watch from before the history has to list", func(t *testing.T) {
		assert.Equal(t, "ERROR ", <-watching(t, base+"pods?watch=1&resourceVersion=1"))
	})
	for mode, status := range map[Mode]int{Away: 0, Hangs: 0, Fails: http.StatusInternalServerError, Garbles: http.StatusOK, Well: http.StatusOK} {
		require.NoError(t, a.Set(mode))
		patience := time.Minute
		if mode == Hangs {
			patience = time.Second
		}
		text, got := get(t, base+"pods", patience)
		assert.Equal(t, status, got)
		assert.Equal(t, mode == Well, json.Valid([]byte(text)) && got == http.StatusOK)
	}
}

// watching reads a watch: type and name of each event.
func watching(t *testing.T, url string) <-chan string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	out := make(chan string, 10)
	go func() {
		defer resp.Body.Close()
		defer close(out)
		d := json.NewDecoder(resp.Body)
		for {
			var event struct {
				Type   string
				Object struct{ Metadata struct{ Name string } }
			}
			if d.Decode(&event) != nil {
				return
			}
			out <- event.Type + " " + event.Object.Metadata.Name
		}
	}()
	return out
}

// An account that may read the pods of its node is refused everything else.
func TestNode(t *testing.T) {
	a := New("a")
	a.AddPod("n", "one", m{"labels": m{"app": "x"}}, "10.0.0.1")
	server := httptest.NewServer(a)
	defer server.Close()
	text, status := get(t, server.URL+"/api/v1/pods?fieldSelector=spec.nodeName=a", time.Minute)
	assert.Equal(t, http.StatusOK, status)
	var list struct {
		Items []struct {
			Metadata struct {
				UID    string
				Labels map[string]string
			}
			Spec   struct{ NodeName string }
			Status struct{ PodIP string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &list))
	require.Len(t, list.Items, 1)
	pod := list.Items[0]
	assert.Equal(t, []string{"one-uid", "x", "a", "10.0.0.1"}, []string{pod.Metadata.UID, pod.Metadata.Labels["app"], pod.Spec.NodeName, pod.Status.PodIP})
	for _, path := range []string{"/api/v1/pods", "/api/v1/pods?fieldSelector=spec.nodeName=b", "/api/v1/nodes", "/apis/resource.k8s.io/v1/resourceclaims"} {
		_, status := get(t, server.URL+path, time.Minute)
		assert.Equal(t, http.StatusForbidden, status, path)
	}
}
