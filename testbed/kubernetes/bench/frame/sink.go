// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // what exporters send

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/fleet"
)

// Sink takes whatever OTLP/gRPC and remote write send, and counts bytes.
type Sink struct {
	OTLP, Write  string // host:port
	Bytes, calls atomic.Int64
	grpc         *grpc.Server
	http         *http.Server
}

func NewSink() (*Sink, error) {
	s := &Sink{}
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	second, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		_ = first.Close()
		return nil, err
	}
	s.OTLP, s.Write = first.Addr().String(), second.Addr().String()
	s.grpc = grpc.NewServer(grpc.ForceServerCodecV2(fleet.Raw{}), grpc.MaxRecvMsgSize(64<<20), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var request, answer []byte // an empty answer is that of OTLP
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		s.calls.Add(1)
		return stream.SendMsg(&answer)
	}))
	s.http = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		s.calls.Add(1)
		w.WriteHeader(http.StatusNoContent)
	})}
	go func() { _ = s.grpc.Serve(counted{first, &s.Bytes}) }() // end with close
	go func() { _ = s.http.Serve(counted{second, &s.Bytes}) }()
	return s, nil
}

func (s *Sink) Close() {
	s.grpc.Stop()
	_ = s.http.Close()
}

// Reached fails where nothing arrived: then what was measured did nothing.
func (s *Sink) Reached() error {
	if s.calls.Load() == 0 {
		return fmt.Errorf("nothing arrived at %s or %s", s.OTLP, s.Write)
	}
	return nil
}

// counted counts what its connections read.
type counted struct {
	net.Listener
	bytes *atomic.Int64
}

func (l counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countedConn{conn, l.bytes}, nil
}

type countedConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}
