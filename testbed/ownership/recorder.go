// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"context"
	"net"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // the agents' exporters compress
)

// maxMessage bounds what an agent may send at once: above the 2 MiB of a batch.
const maxMessage = 32 << 20

// Recorder is an OTLP/gRPC server that keeps every point of metrics that
// arrives.
type Recorder struct {
	pmetricotlp.UnimplementedGRPCServer

	addr   string
	server *grpc.Server
	done   chan struct{}

	mu      sync.Mutex
	points  []Point
	strings map[string]string // one copy of each
}

// Record starts a recorder on a free port of loopback. Close ends it.
func Record() (*Recorder, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Recorder{
		addr: l.Addr().String(), server: grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage)),
		done: make(chan struct{}), strings: map[string]string{},
	}
	pmetricotlp.RegisterGRPCServer(r.server, r)
	go func() {
		defer close(r.done)
		_ = r.server.Serve(l) // ends with Close
	}()
	return r, nil
}

// Addr is host:port of the server, which speaks without TLS.
func (r *Recorder) Addr() string { return r.addr }

// Close ends the server; what was recorded stays.
func (r *Recorder) Close() {
	r.server.Stop()
	<-r.done
}

// Export takes what an agent sends.
func (r *Recorder) Export(_ context.Context, request pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.points = flatten(r.points, request.Metrics(), now, r.intern)
	return pmetricotlp.NewExportResponse(), nil
}

func (r *Recorder) intern(s string) string {
	if known, ok := r.strings[s]; ok {
		return known
	}
	r.strings[s] = s
	return s
}

// Len is how many points there are, for Since.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.points)
}

// Since are the points from the n-th on, in the order in which they arrived.
// They are shared: do not change them.
func (r *Recorder) Since(n int) []Point {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.points[n:len(r.points):len(r.points)]
}
