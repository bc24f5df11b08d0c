// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// installation is the configuration of a collector in YAML.
type installation string

func of(_ *testing.T, yaml string) installation { return installation(yaml) }

// check runs one check.
func (in installation) check(t *testing.T, name string) []Result {
	t.Helper()
	results, err := Run(t.Context(), Options{Configs: []string{"yaml:" + string(in)}, Only: []string{name}, Timeout: 5 * time.Second, Version: "0.1.0"})
	require.NoError(t, err)
	require.NotEmpty(t, results)
	require.Equal(t, name, results[0].Check, results)
	return results
}

// otlp answers each call with a status. A call without the token is refused.
type otlp struct {
	pmetricotlp.UnimplementedGRPCServer
	token  string
	answer codes.Code
}

func (o *otlp) Export(ctx context.Context, request pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	if request.Metrics().ResourceMetrics().Len() > 0 {
		return pmetricotlp.NewExportResponse(), status.Error(codes.InvalidArgument, "nothing is to be exported")
	}
	sent, _ := metadata.FromIncomingContext(ctx)
	if o.token != "" && !slices.Equal(sent.Get("authorization"), []string{"Bearer " + o.token}) {
		return pmetricotlp.NewExportResponse(), status.Error(codes.Unauthenticated, "no more")
	}
	return pmetricotlp.NewExportResponse(), status.Error(o.answer, "no more")
}

func serveOTLP(t *testing.T, o *otlp, options ...grpc.ServerOption) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(options...)
	pmetricotlp.RegisterGRPCServer(server, o)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

func serveOTLPOverTLS(t *testing.T, o *otlp) (address string, certificate *x509.Certificate) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil) // for its certificate
	s.StartTLS()
	defer s.Close()
	return serveOTLP(t, o, grpc.Creds(credentials.NewServerTLSFromCert(&s.TLS.Certificates[0]))), s.Certificate()
}

func TestGatewayOverTLS(t *testing.T) {
	const token = "hush-hush"
	address, certificate := serveOTLPOverTLS(t, &otlp{token: token})
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte(token+"\nan-older-one\n"), 0o600))
	for name, tt := range map[string]struct {
		exporter, auth string
		want           Status
		remedy         string
	}{
		"right":               {"tls: {ca_file: " + ca + "}", "{token: " + token + "}", OK, ""},
		"the token in a file": {"tls: {ca_file: " + ca + "}", "{filename: " + filepath.Join(dir, "token") + "}", OK, ""},
		"a wrong token":       {"tls: {ca_file: " + ca + "}", "{token: wrong-hush}", Fail, "token is not the gateway's"},
		"no file":             {"tls: {ca_file: " + ca + "}", "{filename: " + dir + "/none}", Fail, "its file is mounted"},
		"not trusted":         {"tls: {}", "{token: " + token + "}", Fail, "ca_file"},
		"another name":        {"tls: {ca_file: " + ca + ", server_name_override: gateway.other}", "{token: " + token + "}", Fail, "server_name_override"},
		"without TLS":         {"tls: {insecure: true}", "{token: " + token + "}", Fail, "GATEWAY_INSECURE=false"},
		"no such authority":   {"tls: {ca_file: " + dir + "/none}", "{token: " + token + "}", Fail, "tls, and that its files"},
	} {
		t.Run(name, func(t *testing.T) {
			in := of(t, fmt.Sprintf(`{exporters: {otlp_grpc: {endpoint: "%s", %s, auth: {authenticator: bearertokenauth}}}, extensions: {bearertokenauth: %s},
				service: {extensions: [bearertokenauth], pipelines: {metrics: {receivers: [x], exporters: [otlp_grpc]}}}}`, address, tt.exporter, tt.auth))
			results := in.check(t, "gateway")
			require.Len(t, results, 1)
			assert.Equal(t, tt.want, results[0].Status, results[0].Seen)
			assert.Contains(t, results[0].Remedy, tt.remedy)
			assert.NotContains(t, fmt.Sprint(results), "hush")
		})
	}
}

func TestGatewayThatRefuses(t *testing.T) {
	for code, remedy := range map[codes.Code]string{codes.Unavailable: "memory_limiter", codes.Unimplemented: "metrics pipeline", codes.PermissionDenied: "token"} {
		address, _ := serveOTLPOverTLS(t, &otlp{answer: code})
		in := of(t, fmt.Sprintf(`{exporters: {otlp_grpc: {endpoint: "https://%s", tls: {insecure_skip_verify: true}}}, service: {pipelines: {metrics: {exporters: [otlp_grpc]}}}}`, address))
		results := in.check(t, "gateway")
		assert.Equal(t, Fail, results[0].Status)
		assert.Contains(t, results[0].Seen, "no more")
		assert.Contains(t, results[0].Remedy, remedy)
	}
	overHTTP := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/in/v1/metrics" || r.Header.Get("X-Tenant") != "a" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(overHTTP.Close)
	for tenant, want := range map[string]Status{"a": OK, "b": Fail} {
		in := of(t, fmt.Sprintf(`{exporters: {otlp_http: {endpoint: "%s/in", headers: {x-tenant: %s}}}, service: {pipelines: {metrics: {exporters: [otlp_http]}}}}`, overHTTP.URL, tenant))
		assert.Equal(t, want, in.check(t, "gateway")[0].Status)
	}
}

func TestScrapeCredentials(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user+password != "mehush" && r.Header.Get("Authorization") != "Bearer hush" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintln(w, `DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1"} 1`)
	}))
	t.Cleanup(s.Close)
	for scrape, want := range map[string]Status{
		`tls_config: {insecure_skip_verify: true}, basic_auth: {username: me, password: hush}`: OK,
		`tls_config: {insecure_skip_verify: true}, authorization: {credentials: hush}`:         OK,
		`tls_config: {insecure_skip_verify: true}, basic_auth: {username: me, password: "1"}`:  Fail,
		`basic_auth: {username: me, password: hush}`:                                           Fail, // not trusted
		`basic_auth: {username: me, password_file: /none}`:                                     Fail,
	} {
		in := of(t, fmt.Sprintf(`{receivers: {dcgm: {endpoints: ["%s/metrics?t=hush"], scrape: {%s}}}, service: {pipelines: {metrics: {receivers: [dcgm]}}}}`, s.URL, scrape))
		results := in.check(t, "exporter")
		assert.Equal(t, want, results[0].Status, "%s: %v", scrape, results)
		assert.NotContains(t, fmt.Sprint(results), "hush")
	}
}

func TestConsole(t *testing.T) {
	const well = `{"freshness": {"data_age": 4}, "version": "0.1.0", "state": "ready", "store": {"engine": "embedded", "reachable": true}, "telemetry": {"exporters_up": 2, "exporters_down": 0, "exporters_frozen": 0, "devices": 3, "services": 1}}`
	for name, tt := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"well":           {200, well, "ok"},
		"no store":       {200, strings.Replace(well, `"reachable": true`, `"reachable": false`, 1), "embedded, does not answer"},
		"a full disk":    {200, strings.Replace(well, `"reachable": true`, `"reachable": true, "problems": [{"part": "samples", "reason": "disk_full", "since": "2026-11-22T14:30:00Z", "refused": 9, "detail": "make room"}]`, 1), "samples are not stored: disk_full, since 2026-11-22T14:30:00Z, 9 refused"},
		"not stored":     {200, strings.Replace(well, `"ready"`, `"not_stored"`, 1), "none is current, for the store did not take what arrived"},
		"old data":       {200, strings.Replace(well, `"data_age": 4`, `"data_age": 400, "stale": true`, 1), "the newest is 6m40s old"},
		"no data":        {200, strings.Replace(well, `"data_age": 4`, `"data_age": null`, 1), "none has arrived"},
		"a frozen one":   {200, strings.Replace(well, `"exporters_frozen": 0`, `"exporters_frozen": 1`, 1), "2 up, 0 down, 1 frozen"},
		"unknown fields": {200, strings.Replace(well, `"exporters_frozen": 0`, `"exporters_frozen": 0, "exporters_unrecognized": 1`, 1), "2 up, 0 down, 0 frozen, 1 with fields that are not known"},
		"no console":     {200, "<html>", "this is no console"},
		"broken":         {500, "", "it answers 500"},
		"a token wanted": {401, "", "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, "/api/v1/status", r.URL.Path)
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}))
			t.Cleanup(s.Close)
			in := of(t, fmt.Sprintf(`{extensions: {gpu_console: {endpoint: "%s"}}, service: {extensions: [gpu_console], pipelines: {}}}`, s.Listener.Addr()))
			var failed []string
			for _, r := range in.check(t, "console") {
				if r.Status == Fail {
					failed = append(failed, r.Seen)
					assert.NotEmpty(t, r.Remedy)
				}
			}
			if tt.want == "ok" {
				assert.Empty(t, failed)
			} else {
				assert.Equal(t, []string{tt.want}, failed)
			}
		})
	}
}

func TestListeners(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	t.Cleanup(func() { l.Close() })
	in := of(t, fmt.Sprintf(`{receivers: {otlp: {protocols: {grpc: {endpoint: "%s"}, http: {endpoint: "%s"}}}}, service: {pipelines: {metrics: {receivers: [otlp]}}}}`, l.Addr(), gone.Addr()))
	results := in.check(t, "otlp")
	require.Len(t, results, 2)
	assert.Equal(t, []Status{OK, Fail}, []Status{results[0].Status, results[1].Status})
}

func TestHealth(t *testing.T) {
	for body, want := range map[string]string{
		`{"status":"Server available"}`:        "healthy",
		`{"healthy":true,"status":"StatusOK"}`: "healthy",
		`{"healthy":true,"status":"StatusRecoverableError","error":"samples are not stored: disk_full, since 2026-11-22T14:30:00Z"}`: "a component is not well: samples are not stored: disk_full, since 2026-11-22T14:30:00Z",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
		t.Cleanup(s.Close)
		in := of(t, fmt.Sprintf(`{extensions: {health_check: {endpoint: "%s"}}, service: {extensions: [health_check], pipelines: {}}}`, s.Listener.Addr()))
		results := in.check(t, "collector")
		require.Len(t, results, 1)
		assert.Equal(t, want, results[0].Seen)
		assert.Equal(t, want == "healthy", results[0].Status == OK)
	}
}

// A machine may have no kubelet: gpu_allocation does without where it is optional, and
// nothing is asked of the Kubernetes API for its sake.
func TestKubeletThatMayBeAbsent(t *testing.T) {
	for name, tt := range map[string]struct {
		optional bool
		status   Status
	}{
		"optional": {true, Skipped},
		"required": {false, Fail},
	} {
		t.Run(name, func(t *testing.T) {
			in := of(t, fmt.Sprintf("{receivers: {gpu_allocation: {optional: %t, socket: %s/kubelet.sock}}, service: {pipelines: {metrics: {receivers: [gpu_allocation]}}}}",
				tt.optional, t.TempDir()))
			results := in.check(t, "kubelet")
			require.Len(t, results, 1)
			assert.Equal(t, tt.status, results[0].Status)
			env, _ := examine(t.Context(), Options{Configs: []string{"yaml:" + string(in)}})
			assert.Equal(t, tt.optional, env.Kube.Unused != "")
		})
	}
}
