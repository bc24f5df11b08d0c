// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
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

// Sink is an OTLP/HTTP server that keeps the resources that it is sent.
type Sink struct {
	mu        sync.Mutex
	resources []Resource
}

// ServeHTTP takes what an exporter with Exporter's configuration sends.
func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	Handler{
		Metrics: func(_ context.Context, md pmetric.Metrics) error {
			for _, rm := range md.ResourceMetrics().All() {
				var names []string
				for _, sm := range rm.ScopeMetrics().All() {
					for _, m := range sm.Metrics().All() {
						names = append(names, m.Name())
					}
				}
				s.keep(Metrics, rm.Resource(), names)
			}
			return nil
		},
		Logs: func(_ context.Context, ld plog.Logs) error {
			for _, rl := range ld.ResourceLogs().All() {
				s.keep(Logs, rl.Resource(), nil)
			}
			return nil
		},
		Traces: func(_ context.Context, td ptrace.Traces) error {
			for _, rs := range td.ResourceSpans().All() {
				s.keep(Traces, rs.Resource(), nil)
			}
			return nil
		},
	}.ServeHTTP(w, r)
}

func (s *Sink) keep(signal Signal, resource pcommon.Resource, metrics []string) {
	attributes := map[string]string{}
	for k, v := range resource.Attributes().All() {
		attributes[k] = v.AsString()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resources = append(s.resources, Resource{signal, attributes, metrics})
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

// Post sends one metric, log record or span for each of these resources to an
// OTLP/HTTP receiver (http://host:port).
func Post(ctx context.Context, url string, signal Signal, resources ...map[string]string) error {
	body, err := request(signal, resources)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/"+string(signal), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", req.URL, resp.Status, text)
	}
	return err
}

// request is the body that Post sends.
func request(signal Signal, resources []map[string]string) ([]byte, error) {
	now := pcommon.NewTimestampFromTime(time.Now())
	describe := func(resource pcommon.Resource, attributes map[string]string) {
		for k, v := range attributes {
			resource.Attributes().PutStr(k, v)
		}
	}
	switch signal {
	case Metrics:
		md := pmetric.NewMetrics()
		for _, attributes := range resources {
			rm := md.ResourceMetrics().AppendEmpty()
			describe(rm.Resource(), attributes)
			m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			m.SetName("test")
			dp := m.SetEmptyGauge().DataPoints().AppendEmpty()
			dp.SetTimestamp(now)
			dp.SetIntValue(1)
		}
		return pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	case Logs:
		ld := plog.NewLogs()
		for _, attributes := range resources {
			rl := ld.ResourceLogs().AppendEmpty()
			describe(rl.Resource(), attributes)
			record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
			record.SetTimestamp(now)
			record.Body().SetStr("test")
		}
		return plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	case Traces:
		td := ptrace.NewTraces()
		for _, attributes := range resources {
			rs := td.ResourceSpans().AppendEmpty()
			describe(rs.Resource(), attributes)
			span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
			span.SetName("test")
			span.SetTraceID([16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
			span.SetSpanID([8]byte{1, 2, 3, 4, 5, 6, 7, 8})
			span.SetStartTimestamp(now)
			span.SetEndTimestamp(now)
		}
		return ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	default:
		return nil, fmt.Errorf("no signal is called %q", signal)
	}
}
