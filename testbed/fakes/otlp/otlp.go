// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlp is the backend of tests of whole collectors: it takes OTLP over gRPC
// and HTTP, gives what arrives to functions or keeps its resources, and sends
// resources.
package otlp

import (
	"context"
	"io"
	"net"
	"net/http"
	"path"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // what exporters compress with by default
)

// maxMessage is how many bytes one request may have: above the 2 MiB of a batch.
const maxMessage = 64 << 20

// Handler takes the requests of exporters, several at a time. The error of a
// function is the response to the request. A signal without a function is refused.
type Handler struct {
	Metrics func(context.Context, pmetric.Metrics) error
	Logs    func(context.Context, plog.Logs) error
	Traces  func(context.Context, ptrace.Traces) error
}

// Server serves OTLP over gRPC, without TLS.
type Server struct {
	addr   string
	server *grpc.Server
	done   chan struct{}
}

// Serve starts a server at host:port until Close. Port 0 is a free one.
func Serve(address string, h Handler) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{addr: l.Addr().String(), server: grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage)), done: make(chan struct{})}
	if h.Metrics != nil {
		pmetricotlp.RegisterGRPCServer(s.server, &metrics{take: h.Metrics})
	}
	if h.Logs != nil {
		plogotlp.RegisterGRPCServer(s.server, &logs{take: h.Logs})
	}
	if h.Traces != nil {
		ptraceotlp.RegisterGRPCServer(s.server, &traces{take: h.Traces})
	}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(l) // ends with Close
	}()
	return s, nil
}

// Addr is host:port of the server.
func (s *Server) Addr() string { return s.addr }

// Close ends the server.
func (s *Server) Close() {
	s.server.Stop()
	<-s.done
}

type metrics struct {
	pmetricotlp.UnimplementedGRPCServer
	take func(context.Context, pmetric.Metrics) error
}

func (m *metrics) Export(ctx context.Context, r pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	return pmetricotlp.NewExportResponse(), m.take(ctx, r.Metrics())
}

type logs struct {
	plogotlp.UnimplementedGRPCServer
	take func(context.Context, plog.Logs) error
}

func (l *logs) Export(ctx context.Context, r plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	return plogotlp.NewExportResponse(), l.take(ctx, r.Logs())
}

type traces struct {
	ptraceotlp.UnimplementedGRPCServer
	take func(context.Context, ptrace.Traces) error
}

func (t *traces) Export(ctx context.Context, r ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	return ptraceotlp.NewExportResponse(), t.take(ctx, r.Traces())
}

// Exporter is the configuration of an otlp_http exporter that sends to a Handler at
// url, one request after the other.
func Exporter(url string) map[string]any {
	return map[string]any{"endpoint": url, "compression": "none", "sending_queue": map[string]any{"num_consumers": 1}}
}

// ServeHTTP takes OTLP/HTTP of an exporter with Exporter's configuration.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxMessage))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	status := http.StatusBadRequest
	switch signal := Signal(path.Base(r.URL.Path)); {
	case signal == Metrics && h.Metrics != nil:
		request := pmetricotlp.NewExportRequest()
		if err = request.UnmarshalProto(body); err == nil {
			status, err = http.StatusServiceUnavailable, h.Metrics(r.Context(), request.Metrics())
		}
	case signal == Logs && h.Logs != nil:
		request := plogotlp.NewExportRequest()
		if err = request.UnmarshalProto(body); err == nil {
			status, err = http.StatusServiceUnavailable, h.Logs(r.Context(), request.Logs())
		}
	case signal == Traces && h.Traces != nil:
		request := ptraceotlp.NewExportRequest()
		if err = request.UnmarshalProto(body); err == nil {
			status, err = http.StatusServiceUnavailable, h.Traces(r.Context(), request.Traces())
		}
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf") // an empty response
}
