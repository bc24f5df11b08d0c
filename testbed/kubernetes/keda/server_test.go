// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// server stands in front of the store and counts, by query, the answers without a
// value.
type server struct {
	url, store string

	mu    sync.Mutex
	empty map[string]int
}

func serve(t *testing.T, store string) *server {
	t.Helper()
	s := &server{store: store, empty: map[string]int{}}
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	s.url = front.URL
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, err := http.NewRequestWithContext(r.Context(), r.Method, s.store+r.URL.RequestURI(), nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	request.Header = r.Header
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	var content struct {
		Status string
		Data   struct{ Result []any }
	}
	if json.Unmarshal(body, &content) == nil && content.Status == "success" && len(content.Data.Result) == 0 {
		s.mu.Lock()
		s.empty[r.URL.Query().Get("query")]++
		s.mu.Unlock()
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(body)
}

// answeredEmpty is how often each query about a service had no value so far.
func (s *server) answeredEmpty(service string) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := maps.Clone(s.empty)
	maps.DeleteFunc(of, func(query string, _ int) bool { return !strings.Contains(query, `service_name="`+service+`"`) })
	return of
}
