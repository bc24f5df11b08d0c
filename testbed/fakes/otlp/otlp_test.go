// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSinkKeepsWhatPostSends(t *testing.T) {
	sink := &Sink{}
	server := httptest.NewServer(sink)
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	attributes := map[string]string{"k8s.pod.name": "chat-0", "service.name": "chat"}
	for _, signal := range []Signal{Metrics, Logs, Traces} {
		require.NoError(t, Post(t.Context(), server.URL, signal, attributes))
	}
	assert.Equal(t, []Resource{{Metrics, attributes, []string{"test"}}, {Logs, attributes, nil}, {Traces, attributes, nil}}, sink.Resources())
	sink.Reset()
	assert.Empty(t, sink.Resources())
	assert.Error(t, Post(t.Context(), server.URL, "profiles", attributes))
}

func TestServer(t *testing.T) {
	var got []string
	s, err := Serve("127.0.0.1:0", Handler{Metrics: func(_ context.Context, md pmetric.Metrics) error {
		if md.ResourceMetrics().Len() == 0 {
			return status.Error(codes.Unavailable, "nothing to keep")
		}
		got = append(got, md.ResourceMetrics().At(0).SchemaUrl())
		return nil
	}})
	require.NoError(t, err)
	defer s.Close()
	conn, err := grpc.NewClient(s.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name)))
	require.NoError(t, err)
	defer conn.Close()

	md := pmetric.NewMetrics()
	metrics := pmetricotlp.NewGRPCClient(conn)
	_, err = metrics.Export(t.Context(), pmetricotlp.NewExportRequestFromMetrics(md))
	assert.Equal(t, codes.Unavailable, status.Code(err), "the function's error is the response")
	md.ResourceMetrics().AppendEmpty().SetSchemaUrl("a")
	_, err = metrics.Export(t.Context(), pmetricotlp.NewExportRequestFromMetrics(md))
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, got)
	_, err = plogotlp.NewGRPCClient(conn).Export(t.Context(), plogotlp.NewExportRequestFromLogs(plog.NewLogs()))
	assert.Equal(t, codes.Unimplemented, status.Code(err), "a signal without a function")
}
