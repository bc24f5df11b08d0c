// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlp speaks as much OTLP (HTTP, JSON) as tests of whole collectors
// need, with the standard library alone: it sends resources and keeps those that
// arrive.
package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A Signal is the last element of an OTLP/HTTP path.
type Signal string

// The signals.
const (
	Metrics Signal = "metrics"
	Logs    Signal = "logs"
	Traces  Signal = "traces"
)

// Resource is one resource that arrived.
type Resource struct {
	Signal     Signal
	Attributes map[string]string // values of every type as text
	Metrics    []string          // names of its metrics
}

type keyValue struct {
	Key   string `json:"key"`
	Value struct {
		String *string         `json:"stringValue,omitempty"`
		Bool   *bool           `json:"boolValue,omitempty"`
		Int    json.RawMessage `json:"intValue,omitempty"` // a string in JSON
		Double *float64        `json:"doubleValue,omitempty"`
	} `json:"value"`
}

type resource struct {
	Resource struct {
		Attributes []keyValue `json:"attributes"`
	} `json:"resource"`
	ScopeMetrics []struct {
		Metrics []struct {
			Name string `json:"name"`
		} `json:"metrics"`
	} `json:"scopeMetrics"`
}

type payload struct {
	Metrics []resource `json:"resourceMetrics"`
	Logs    []resource `json:"resourceLogs"`
	Traces  []resource `json:"resourceSpans"`
}

// Post sends one metric, log record or span for each of these resources to an
// OTLP/HTTP receiver (http://host:port).
func Post(ctx context.Context, url string, signal Signal, resources ...map[string]string) error {
	type m = map[string]any
	now := strconv.FormatInt(time.Now().UnixNano(), 10)
	var list []m
	for _, attributes := range resources {
		kvs := []m{}
		for k, v := range attributes {
			kvs = append(kvs, m{"key": k, "value": m{"stringValue": v}})
		}
		r := m{"resource": m{"attributes": kvs}}
		switch signal {
		case Metrics:
			r["scopeMetrics"] = []m{{"metrics": []m{{"name": "test", "gauge": m{"dataPoints": []m{{"timeUnixNano": now, "asInt": "1"}}}}}}}
		case Logs:
			r["scopeLogs"] = []m{{"logRecords": []m{{"timeUnixNano": now, "body": m{"stringValue": "test"}}}}}
		case Traces:
			r["scopeSpans"] = []m{{"spans": []m{{
				"traceId": "0102030405060708090a0b0c0d0e0f10", "spanId": "0102030405060708", "name": "test",
				"startTimeUnixNano": now, "endTimeUnixNano": now,
			}}}}
		}
		list = append(list, r)
	}
	key := map[Signal]string{Metrics: "resourceMetrics", Logs: "resourceLogs", Traces: "resourceSpans"}[signal]
	body, err := json.Marshal(m{key: list})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/"+string(signal), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return fmt.Errorf("%s answers %s: %s", req.URL, resp.Status, text)
	}
	return nil
}

// Sink is an OTLP/HTTP server that keeps what it is sent, for an otlp_http
// exporter with Exporter's configuration.
type Sink struct {
	mu        sync.Mutex
	resources []Resource
}

// Exporter is the configuration of an otlp_http exporter that sends to a Sink.
func Exporter(url string) map[string]any {
	return map[string]any{"endpoint": url, "encoding": "json", "compression": "none", "sending_queue": map[string]any{"num_consumers": 1}}
}

// ServeHTTP takes what an exporter sends.
func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var p payload
	if err := json.NewDecoder(io.LimitReader(r.Body, 64<<20)).Decode(&p); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for signal, list := range map[Signal][]resource{Metrics: p.Metrics, Logs: p.Logs, Traces: p.Traces} {
		for _, from := range list {
			to := Resource{Signal: signal, Attributes: map[string]string{}}
			for _, kv := range from.Resource.Attributes {
				to.Attributes[kv.Key] = kv.text()
			}
			for _, scope := range from.ScopeMetrics {
				for _, metric := range scope.Metrics {
					to.Metrics = append(to.Metrics, metric.Name)
				}
			}
			s.resources = append(s.resources, to)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "{}")
}

// Resources are those that arrived, in their order.
func (s *Sink) Resources() []Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Resource(nil), s.resources...)
}

// Reset forgets them.
func (s *Sink) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resources = nil
}

func (kv keyValue) text() string {
	v := kv.Value
	switch {
	case v.String != nil:
		return *v.String
	case v.Bool != nil:
		return strconv.FormatBool(*v.Bool)
	case v.Double != nil:
		return strconv.FormatFloat(*v.Double, 'g', -1, 64)
	default:
		return string(bytes.Trim(v.Int, `"`))
	}
}
