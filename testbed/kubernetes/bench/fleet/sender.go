// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

const export = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"

// connections is how many are open at most: nodes share them.
const connections = 100

// timeout of a request; one that takes longer is counted as failed.
const timeout = 10 * time.Second

// Sender sends what the nodes of a fleet send, each once an interval, spread over
// it evenly.
type Sender struct {
	template *Template
	nodes    int
	interval time.Duration
	url      string             // of OTLP/HTTP; "" is OTLP/gRPC
	conns    []*grpc.ClientConn // nil over HTTP
	cancel   context.CancelFunc
	done     sync.WaitGroup

	sent, failed, late atomic.Int64
	lastErr            atomic.Pointer[string]
}

// Counts are requests since the start.
type Counts struct {
	Sent, Failed int64
	Late         int64 // sent more than a second after their time: the sender or the receiver cannot keep up
}

// Start begins to send to host:port, OTLP/gRPC, or to the URL of an OTLP/HTTP
// receiver of metrics. Stop must be called.
func Start(endpoint string, template *Template, nodes int, interval time.Duration) (*Sender, error) {
	if nodes < 1 || nodes > MaxNodes {
		return nil, fmt.Errorf("%d nodes: use 1 to %d", nodes, MaxNodes)
	}
	s := &Sender{template: template, nodes: nodes, interval: interval, conns: make([]*grpc.ClientConn, min(nodes, connections))}
	if strings.HasPrefix(endpoint, "http://") {
		s.url = endpoint
	}
	for i := range s.conns {
		if s.url != "" {
			break
		}
		conn, err := grpc.NewClient("passthrough:///"+endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(Raw{})))
		if err != nil {
			s.Stop()
			return nil, err
		}
		s.conns[i] = conn
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	begin := time.Now()
	for i, conn := range s.conns {
		s.done.Go(func() { s.run(ctx, conn, i, begin) })
	}
	return s, nil
}

// run sends for every node with a number that leaves the remainder i.
func (s *Sender) run(ctx context.Context, conn *grpc.ClientConn, i int, begin time.Time) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	var buf []byte
	for cycle := 0; ; cycle++ {
		for node := i; node < s.nodes; node += len(s.conns) {
			due := begin.Add(time.Duration(cycle)*s.interval + s.interval*time.Duration(node)/time.Duration(s.nodes))
			timer.Reset(time.Until(due))
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			if time.Since(due) > time.Second {
				s.late.Add(1)
			}
			buf = s.template.Request(buf, node, time.Now())
			if !s.send(ctx, conn, buf) {
				buf = nil // the transport may still read it
			}
		}
	}
}

func (s *Sender) send(ctx context.Context, conn *grpc.ClientConn, request []byte) (ok bool) {
	call, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var err error
	if conn == nil {
		err = s.post(call, request)
	} else {
		var answer []byte
		err = conn.Invoke(call, export, &request, &answer)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		text := err.Error()
		s.lastErr.Store(&text)
		s.failed.Add(1)
	default:
		s.sent.Add(1)
	}
	return err == nil
}

func (s *Sender) post(ctx context.Context, request []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(request))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return err
}

// client keeps as many connections as there are senders.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}

// Counts is what was sent until now.
func (s *Sender) Counts() Counts {
	return Counts{Sent: s.sent.Load(), Failed: s.failed.Load(), Late: s.late.Load()}
}

// LastError is the text of the last failure, "" where there was none.
func (s *Sender) LastError() string {
	if text := s.lastErr.Load(); text != nil {
		return *text
	}
	return ""
}

// Stop ends it.
func (s *Sender) Stop() {
	if s.cancel != nil {
		s.cancel()
	}
	s.done.Wait()
	client.CloseIdleConnections()
	for _, conn := range s.conns {
		if conn != nil {
			_ = conn.Close()
		}
	}
}

// Raw is a codec for messages that are serialised already.
type Raw struct{}

var _ encoding.CodecV2 = Raw{}

func (Raw) Name() string { return "proto" }

func (Raw) Marshal(v any) (mem.BufferSlice, error) {
	text, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("%T is not serialised", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*text)}, nil
}

func (Raw) Unmarshal(data mem.BufferSlice, v any) error {
	text, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("%T is not bytes", v)
	}
	*text = data.Materialize()
	return nil
}
