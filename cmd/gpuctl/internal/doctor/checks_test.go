// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/exporterpage"
)

// of makes an installation of a configuration in YAML.
func of(t *testing.T, yaml string) *installation {
	t.Helper()
	in, found, err := examine(t.Context(), Options{Configs: []string{"yaml:" + yaml}, Timeout: 5 * time.Second, Version: "0.1.0"})
	require.NoError(t, err)
	require.Equal(t, OK, found[0].Status, found)
	return in
}

// grpcServer answers each call with a status. A call without the token is refused.
func grpcServer(t *testing.T, token string, code int) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		assert.Equal(t, make([]byte, 5), body, "an empty message, not compressed")
		assert.Equal(t, methodExport, r.URL.Path)
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
		answer := code
		if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
			answer = grpcUnauthenticated
		}
		if answer == grpcOK {
			_, _ = w.Write(make([]byte, 5))
		}
		w.Header().Set("Grpc-Status", fmt.Sprint(answer))
		w.Header().Set("Grpc-Message", "no%20more")
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func TestGatewayOverTLS(t *testing.T) {
	const token = "hush-hush"
	s := grpcServer(t, token, grpcOK)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte(token+"\nan-older-one\n"), 0o600))
	address := s.Listener.Addr().String()
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
			results := in.checkGateway(t.Context())
			require.Len(t, results, 1)
			assert.Equal(t, tt.want, results[0].Status, results[0].Seen)
			assert.Contains(t, results[0].Remedy, tt.remedy)
			assert.NotContains(t, fmt.Sprint(results), "hush")
		})
	}
}

func TestGatewayThatRefuses(t *testing.T) {
	for code, remedy := range map[int]string{grpcUnavailable: "memory_limiter", grpcUnimplemented: "metrics pipeline", grpcPermission: "token"} {
		s := grpcServer(t, "", code)
		in := of(t, fmt.Sprintf(`{exporters: {otlp_grpc: {endpoint: "https://%s", tls: {insecure_skip_verify: true}}}, service: {pipelines: {metrics: {exporters: [otlp_grpc]}}}}`, s.Listener.Addr()))
		results := in.checkGateway(t.Context())
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
		assert.Equal(t, want, in.checkGateway(t.Context())[0].Status)
	}
}

// The rules by which the receiver chooses pods and ports.
func TestTargets(t *testing.T) {
	exporterOf := func(labels map[string]string, phase string, ports ...int) pod {
		var p pod
		p.Metadata.Labels, p.Status.Phase, p.Status.PodIP = labels, phase, "10.0.0.1"
		c := container{Image: "nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3"}
		for _, port := range ports {
			c.Ports = append(c.Ports, containerPort{port})
		}
		p.Spec.Containers = []container{c}
		return p
	}
	ours := map[string]string{"app": "nvidia-dcgm-exporter"}
	for name, tt := range map[string]struct {
		k    dcgmKubernetes
		pod  pod
		want string
	}{
		"its port":        {dcgmKubernetes{}, exporterOf(ours, "Running", 9400), "http://10.0.0.1:9400/metrics"},
		"no port":         {dcgmKubernetes{}, exporterOf(ours, "Running"), "http://10.0.0.1:9400/metrics"},
		"GKE":             {dcgmKubernetes{}, exporterOf(map[string]string{"k8s-app": "dcgm-exporter"}, "Running", 9400), "http://10.0.0.1:9400/metrics"},
		"another port":    {dcgmKubernetes{}, exporterOf(ours, "Running", 9500), ""},
		"the port told":   {dcgmKubernetes{Port: 9500}, exporterOf(ours, "Running", 9500), "http://10.0.0.1:9500/metrics"},
		"another pod":     {dcgmKubernetes{}, exporterOf(map[string]string{"app": "node-exporter"}, "Running", 9400), ""},
		"by selector":     {dcgmKubernetes{LabelSelector: "x=y"}, exporterOf(map[string]string{"x": "y"}, "Running", 9400), "http://10.0.0.1:9400/metrics"},
		"not yet running": {dcgmKubernetes{}, exporterOf(ours, "Pending", 9400), ""},
	} {
		got := ""
		for _, e := range tt.k.targets(tt.pod, exporter{page: exporterpage.DefaultSettings()}) {
			got += e.url
			assert.Equal(t, "4.5.3", e.version, name)
		}
		assert.Equal(t, tt.want, got, name)
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
		results := in.checkExporters(t.Context())
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
			for _, r := range in.checkConsole(t.Context()) {
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

func TestCertificates(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	write := func(from, to time.Time) *tlsServer {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		cert, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: to}, &x509.Certificate{}, &key.PublicKey, key)
		require.NoError(t, err)
		raw, err := x509.MarshalPKCS8PrivateKey(key)
		require.NoError(t, err)
		s := &tlsServer{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
		require.NoError(t, os.WriteFile(s.CertFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
		require.NoError(t, os.WriteFile(s.KeyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600))
		return s
	}
	in := &installation{Options: Options{now: func() time.Time { return now }}}
	const day = 24 * time.Hour
	for name, tt := range map[string]struct {
		from, to time.Duration
		want     Status
	}{"valid": {-day, 60 * day, OK}, "soon over": {-day, 3 * day, Warn}, "over": {-9 * day, -day, Fail}, "not yet": {day, 60 * day, Fail}} {
		assert.Equal(t, tt.want, in.certificate("otlp", "x", write(now.Add(tt.from), now.Add(tt.to))).Status, name)
	}
	assert.Equal(t, Fail, in.certificate("otlp", "x", &tlsServer{dir + "/none", dir + "/none"}).Status)
}

func TestListeners(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	t.Cleanup(func() { l.Close() })
	in := of(t, fmt.Sprintf(`{receivers: {otlp: {protocols: {grpc: {endpoint: "%s"}, http: {endpoint: "%s"}}}}, service: {pipelines: {metrics: {receivers: [otlp]}}}}`, l.Addr(), gone.Addr()))
	results := in.checkListeners(t.Context())
	require.Len(t, results, 2)
	assert.Equal(t, []Status{OK, Fail}, []Status{results[0].Status, results[1].Status})
}

func TestState(t *testing.T) {
	dir := t.TempDir()
	assert.Equal(t, OK, stateOf(dir).Status)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries, "nothing is left behind")
	assert.Equal(t, Warn, stateOf(dir+"/none").Status)
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	assert.Equal(t, Fail, stateOf(file).Status)
}

func TestUnreadableSockets(t *testing.T) {
	for _, tt := range []struct {
		err          error
		seen, remedy string
	}{
		{fs.ErrNotExist, "no such socket", "the folder and not the socket"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)}, "may not use it", "runAsUser: 0"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, "nobody answers", "mount the folder"},
		{errors.New("odd"), "odd", "gpu_allocation::socket"},
	} {
		seen, remedy := unreadable(t.TempDir()+"/kubelet.sock", tt.err)
		assert.Contains(t, seen, tt.seen)
		assert.Contains(t, remedy, tt.remedy)
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
			results := in.checkKubelet(t.Context())
			require.Len(t, results, 1)
			assert.Equal(t, tt.status, results[0].Status)
			_, asks := in.authType()
			assert.NotEqual(t, tt.optional, asks)
		})
	}
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
		results := in.checkHealth(t.Context())
		require.Len(t, results, 1)
		assert.Equal(t, want, results[0].Seen)
		assert.Equal(t, want == "healthy", results[0].Status == OK)
	}
}
