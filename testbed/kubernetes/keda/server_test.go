// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/common/model"
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

// value asks the store, not counted.
func (s *server) value(ctx context.Context, query string) (float64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.store+"/api/v1/query?query="+url.QueryEscape(query), nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var content struct {
		Error string
		Data  struct{ Result model.Vector }
	}
	if err := json.NewDecoder(answer.Body).Decode(&content); err != nil {
		return 0, err
	}
	if len(content.Data.Result) != 1 {
		return 0, fmt.Errorf("%s has %d values: %s", query, len(content.Data.Result), content.Error)
	}
	return float64(content.Data.Result[0].Value), nil
}
