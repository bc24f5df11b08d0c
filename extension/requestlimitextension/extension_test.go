// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package requestlimitextension

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/otelcol-gpu/otelcol-gpu/extension/requestlimitextension/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/extension/requestlimitextension/internal/metadatatest"
)

type fixture struct {
	*requestLimit
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
}

func begin(t *testing.T, change func(*Config)) fixture {
	cfg := createDefaultConfig().(*Config)
	cfg.MaxRequests, cfg.MaxRequestsPerPeer = 2, 1
	if change != nil {
		change(cfg)
	}
	f := fixture{telemetry: componenttest.NewTelemetry()}
	set := extensiontest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = f.telemetry.NewTelemetrySettings()
	core, logs := observer.New(zap.InfoLevel)
	set.Logger, f.logs = zap.New(core), logs
	e, err := NewFactory().Create(t.Context(), set, cfg)
	require.NoError(t, err)
	f.requestLimit = e.(*requestLimit)
	t.Cleanup(func() {
		assert.NoError(t, e.Shutdown(context.Background()))
		assert.NoError(t, f.telemetry.Shutdown(context.Background()))
	})
	return f
}

// refusals asserts how many requests were refused with this reason, in one line of log.
func (f fixture) refusals(t *testing.T, reason string, n int64) {
	t.Helper()
	metadatatest.AssertEqualExtensionRequestLimitRefused(t, f.telemetry, []metricdata.DataPoint[int64]{
		{Value: n, Attributes: attribute.NewSet(attribute.String("reason", reason))},
	}, metricdatatest.IgnoreTimestamp())
	assert.Equal(t, 1, f.logs.FilterMessageSnippet("requests are refused").Len())
}

// idle waits until nothing is counted any more: a stream ends after its answer.
func (f fixture) idle(t *testing.T) {
	t.Helper()
	assert.Eventually(t, func() bool { return f.limiter.InFlight() == 0 }, 10*time.Second, time.Millisecond)
}

// handler returns the middleware around next.
func (f fixture) handler(t *testing.T, next http.HandlerFunc) http.Handler {
	wrap, err := f.GetHTTPHandler(t.Context())
	require.NoError(t, err)
	h, err := wrap(t.Context(), next)
	require.NoError(t, err)
	return h
}

func ask(h http.Handler, peer, host string) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest(http.MethodPost, "/v1/metrics", strings.NewReader("{}")), httptest.NewRecorder()
	r.RemoteAddr, r.Host = peer, host
	h.ServeHTTP(w, r)
	return w
}

// While one request of a peer is worked on another is refused before its body is read.
func TestHTTP(t *testing.T) {
	f := begin(t, nil)
	var h http.Handler
	var within *httptest.ResponseRecorder
	next := func(http.ResponseWriter, *http.Request) {
		if within == nil {
			within = &httptest.ResponseRecorder{}
			within = ask(h, "10.0.0.1:2", "agent")
		}
	}
	h = f.handler(t, next)
	assert.Equal(t, 200, ask(h, "10.0.0.1:1", "agent").Code)
	assert.Equal(t, http.StatusTooManyRequests, within.Code)
	assert.Equal(t, "1", within.Header().Get("Retry-After"))
	f.refusals(t, "requests_per_peer", 1)
	assert.Equal(t, 200, ask(h, "10.0.0.1:3", "agent").Code, "it is free again")

	// In all, from different peers; also where a handler panics.
	f = begin(t, nil)
	h = f.handler(t, func(_ http.ResponseWriter, r *http.Request) {
		switch peerOf(r.RemoteAddr) {
		case "a":
			ask(h, "b:1", "agent")
		case "b":
			within = ask(h, "c:1", "agent")
			panic(http.ErrAbortHandler)
		}
	})
	assert.Panics(t, func() { ask(h, "a:1", "agent") })
	assert.Equal(t, http.StatusServiceUnavailable, within.Code)
	f.refusals(t, "requests", 1)
	assert.Zero(t, f.limiter.InFlight())
}

func TestHTTPHosts(t *testing.T) {
	f := begin(t, func(c *Config) { c.Hosts = []string{"localhost"} })
	h := f.handler(t, func(http.ResponseWriter, *http.Request) {})
	assert.Equal(t, 200, ask(h, "[::1]:1", "localhost:4318").Code)
	for range 2 {
		assert.Equal(t, 403, ask(h, "[::1]:1", "evil.example").Code)
	}
	f.refusals(t, "host", 2)
}

// A body that is sent slowly is ended, in a real server.
func TestSlowBody(t *testing.T) {
	f := begin(t, func(c *Config) { c.Timeout = 100 * time.Millisecond })
	ended := make(chan error, 1)
	server := httptest.NewServer(f.handler(t, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		ended <- err
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { assert.NoError(t, conn.Close()) }()
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx")
	require.NoError(t, err)
	assert.ErrorContains(t, <-ended, "timeout")
	f.idle(t)
}

// service is OTLP's, with what a test wants it to do.
type service struct {
	pmetricotlp.UnimplementedGRPCServer
	export func() error
}

func (s *service) Export(context.Context, pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	return pmetricotlp.NewExportResponse(), s.export()
}

// dial serves OTLP behind the extension and connects to it.
func (f fixture) dial(t *testing.T, export func() error) *grpc.ClientConn {
	options, err := f.GetGRPCServerOptions(t.Context())
	require.NoError(t, err)
	server := grpc.NewServer(append(options, grpc.MaxRecvMsgSize(1<<10))...)
	pmetricotlp.RegisterGRPCServer(server, &service{export: export})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, conn.Close()) })
	return conn
}

func export(ctx context.Context, conn *grpc.ClientConn, name string) error {
	md := pmetric.NewMetrics()
	md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetName(name)
	_, err := pmetricotlp.NewGRPCClient(conn).Export(ctx, pmetricotlp.NewExportRequestFromMetrics(md))
	return err
}

func TestGRPCRefusesAtOnce(t *testing.T) {
	f, entered, leave := begin(t, nil), make(chan struct{}), make(chan struct{})
	conn := f.dial(t, func() error {
		entered <- struct{}{}
		<-leave
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { first <- export(ctx, conn, "m") }()
	<-entered
	assert.Equal(t, codes.Unavailable, status.Code(export(t.Context(), conn, "m")))
	f.refusals(t, "requests_per_peer", 1)
	// The peer goes, and its request is worked on all the same.
	cancel()
	assert.Equal(t, codes.Canceled, status.Code(<-first))
	assert.Equal(t, codes.Unavailable, status.Code(export(t.Context(), conn, "m")))
	close(leave)
	f.idle(t)
	go func() { <-entered }()
	assert.NoError(t, export(t.Context(), conn, "m"))
}

// However a stream ends, it counts no longer.
func TestGRPCReleases(t *testing.T) {
	const method = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
	for name, c := range map[string]struct {
		call func(context.Context, *grpc.ClientConn) error
		want codes.Code
	}{
		"answered": {func(ctx context.Context, conn *grpc.ClientConn) error { return export(ctx, conn, "m") }, codes.Unavailable},
		"too large": {func(ctx context.Context, conn *grpc.ClientConn) error {
			return export(ctx, conn, strings.Repeat("m", 2<<10))
		}, codes.ResourceExhausted},
		"no such method": {func(ctx context.Context, conn *grpc.ClientConn) error {
			return conn.Invoke(ctx, "/a.B/C", pmetricotlp.NewExportRequest(), pmetricotlp.NewExportRequest(), grpc.ForceCodec(raw{}))
		}, codes.Unimplemented},
		"not a message": {func(ctx context.Context, conn *grpc.ClientConn) error {
			return conn.Invoke(ctx, method, "cut", "", grpc.ForceCodec(raw{}))
		}, codes.Internal},
		// Headers, and then nothing: the extension's timeout ends it.
		"slow": {func(ctx context.Context, conn *grpc.ClientConn) error {
			stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, method, grpc.ForceCodec(raw{}))
			if err != nil {
				return err
			}
			return stream.RecvMsg(nil)
		}, codes.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			f := begin(t, func(c *Config) { c.Timeout = 100 * time.Millisecond })
			conn := f.dial(t, func() error { return status.Error(codes.Unavailable, "queue is full") })
			err := c.call(t.Context(), conn)
			assert.Equal(t, c.want, status.Code(err), err)
			f.idle(t)
			assert.Zero(t, f.logs.Len())
		})
	}
}

// raw sends a message that is cut.
type raw struct{}

func (raw) Marshal(any) ([]byte, error) { return []byte{0x0a, 5}, nil }
func (raw) Unmarshal([]byte, any) error { return nil }
func (raw) Name() string                { return "proto" }

func TestGRPCHosts(t *testing.T) {
	f := begin(t, func(c *Config) { c.Hosts = []string{"localhost"} })
	conn := f.dial(t, func() error { return nil })
	assert.NoError(t, export(t.Context(), conn, "m"))
	evil, err := grpc.NewClient(conn.Target(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("evil.example"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, evil.Close()) }()
	assert.Equal(t, codes.PermissionDenied, status.Code(export(t.Context(), evil, "m")))
	f.refusals(t, "host", 1)
}
