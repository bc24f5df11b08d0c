// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/extension"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// token is an authenticator that wants one bearer token.
type token struct {
	component.StartFunc
	component.ShutdownFunc
	want string
}

func (a token) Authenticate(ctx context.Context, sources map[string][]string) (context.Context, error) {
	if all := sources["Authorization"]; len(all) == 1 && all[0] == "Bearer "+a.want {
		return ctx, nil
	}
	return ctx, errors.New("the token is not " + a.want)
}

var tokenID = component.MustNewID("bearertokenauth")

// running is a started extension, with its port.
type running struct {
	*console
	logs *observer.ObservedLogs
	tel  *componenttest.Telemetry
	url  string
}

func begin(t *testing.T, s store.Store, change func(*Config)) *running {
	t.Helper()
	config := createDefaultConfig().(*Config)
	config.NetAddr.Endpoint = "localhost:0"
	if change != nil {
		change(config)
	}
	require.NoError(t, config.Validate())
	core, logs := observer.New(zapcore.InfoLevel)
	tel := componenttest.NewTelemetry()
	set := extension.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: tel.NewTelemetrySettings(), BuildInfo: component.NewDefaultBuildInfo()}
	set.Logger = zap.New(core)
	c, err := newExtension(set, config)
	require.NoError(t, err)
	extensions := host{store.DefaultID: s.(component.Component), tokenID: token{want: "correct-horse"}}
	require.NoError(t, c.Start(t.Context(), extensions))
	t.Cleanup(func() {
		require.NoError(t, c.Shutdown(context.Background()))
		require.NoError(t, tel.Shutdown(context.Background()))
	})
	return &running{c, logs, tel, "http://" + c.address.String()}
}

// get asks the running server; headers are pairs.
func (r *running) get(t *testing.T, method, path string, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.url+path, nil)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		}
		request.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return answer{response.StatusCode, response.Header, body}
}

// Who begins a request and never ends it keeps no connection for that.
func TestABodyThatDoesNotCome(t *testing.T) {
	assert.NotZero(t, createDefaultConfig().(*Config).ReadTimeout)
	r := begin(t, &fakeStore{}, func(c *Config) { c.ReadTimeout = 50 * time.Millisecond })
	conn, err := net.Dial("tcp", r.address.String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "POST /api/v1/acknowledge HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{")
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	assert.Contains(t, string(answer), "Connection: close")
}

// The page is there for everybody, its files are kept as long as they may be, and
// nothing but what it needs is allowed to it.
func TestPage(t *testing.T) {
	r := begin(t, &fakeStore{}, func(c *Config) { c.PathPrefix = "/gpu/console" })
	index := r.get(t, http.MethodGet, "/")
	require.Equal(t, http.StatusOK, index.status)
	assert.Equal(t, "text/html; charset=utf-8", index.header.Get("Content-Type"))
	assert.Equal(t, "no-cache", index.header.Get("Cache-Control"))
	policy := index.header.Get("Content-Security-Policy")
	for _, rule := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"} {
		assert.Contains(t, policy, rule)
	}
	assert.NotContains(t, policy, "unsafe")
	assert.Equal(t, "nosniff", index.header.Get("X-Content-Type-Options"))
	assert.Equal(t, "no-referrer", index.header.Get("Referrer-Policy"))
	tag := index.header.Get("ETag")
	require.NotEmpty(t, tag)
	again := r.get(t, http.MethodGet, "/index.html", "If-None-Match", tag)
	assert.Equal(t, http.StatusNotModified, again.status)
	assert.Empty(t, again.body)

	written, err := os.ReadFile("openapi.yaml")
	require.NoError(t, err)
	for _, prefix := range []string{"", "/gpu/console"} {
		served := r.get(t, http.MethodGet, prefix+"/openapi.yaml")
		require.Equal(t, http.StatusOK, served.status)
		assert.Equal(t, "application/yaml", served.header.Get("Content-Type"))
		assert.Equal(t, string(written), string(served.body))
	}

	assets := regexp.MustCompile(`"\./(assets/[^"]+)"`).FindAllStringSubmatch(string(index.body), -1)
	require.NotEmpty(t, assets, "the page names its files relative to itself")
	for _, prefix := range []string{"", "/gpu/console"} {
		for _, a := range assets {
			plain := r.get(t, http.MethodGet, prefix+"/"+a[1])
			require.Equal(t, http.StatusOK, plain.status, a[1])
			assert.Contains(t, plain.header.Get("Cache-Control"), "immutable")
			packed := r.get(t, http.MethodGet, prefix+"/"+a[1], "Accept-Encoding", "gzip, br")
			require.Equal(t, "gzip", packed.header.Get("Content-Encoding"), a[1])
			assert.Contains(t, packed.header.Get("Vary"), "Accept-Encoding")
			assert.Less(t, len(packed.body), len(plain.body))
			assert.NotEqual(t, plain.header.Get("ETag"), packed.header.Get("ETag"))
			unpacked, err := gzip.NewReader(bytes.NewReader(packed.body))
			require.NoError(t, err)
			text, err := io.ReadAll(unpacked)
			require.NoError(t, err)
			assert.Equal(t, plain.body, text)
			kept := r.get(t, http.MethodGet, prefix+"/"+a[1], "Accept-Encoding", "gzip", "If-None-Match", packed.header.Get("ETag"))
			assert.Equal(t, http.StatusNotModified, kept.status, "a browser asks with the tag that it got")
		}
		assert.Equal(t, http.StatusOK, r.get(t, http.MethodGet, prefix+"/").status)
		assert.Equal(t, http.StatusOK, r.get(t, http.MethodGet, prefix+"/api/v1/status").status)
	}
	redirect := r.get(t, http.MethodGet, "/gpu/console")
	assert.Equal(t, http.StatusPermanentRedirect, redirect.status)
	assert.Equal(t, "console/", redirect.header.Get("Location"), "relative: a host in front may have another name")

	for _, path := range []string{"/assets/", "/assets/../../config.go", "/%2e%2e/config.go", "/assets", "/web/dist/index.html", "/.git/config", "/gpu", "/gpu/consolex", "//"} {
		got := r.get(t, http.MethodGet, path)
		assert.Contains(t, []int{http.StatusNotFound, http.StatusMovedPermanently, http.StatusTemporaryRedirect}, got.status, path)
	}
	assert.Equal(t, http.StatusMethodNotAllowed, r.get(t, http.MethodPost, "/").status)
	assert.Empty(t, r.get(t, http.MethodHead, "/").body)
}

// The API can only be read, as JSON, and its errors are JSON.
func TestMethodsAndPaths(t *testing.T) {
	r := begin(t, &fakeStore{}, nil)
	for path, query := range everyEndpoint {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			got := r.get(t, method, "/api/v1/"+path+"?"+query)
			assert.Equal(t, http.StatusMethodNotAllowed, got.status, path)
			assert.Equal(t, "GET, HEAD", got.header.Get("Allow"))
			assert.Equal(t, consoleapi.MethodNotAllowed, reasonOf(t, got).Reason)
		}
	}
	for _, path := range []string{"/api/", "/api/v1/", "/api/v1/nothing", "/api/v2/status", "/api/v1/status/x"} {
		got := r.get(t, http.MethodGet, path)
		assert.Equal(t, http.StatusNotFound, got.status, path)
		assert.Equal(t, consoleapi.NotFound, reasonOf(t, got).Reason)
	}
	long := r.get(t, http.MethodGet, "/api/v1/services?q="+strings.Repeat("%20", 12_000))
	assert.Equal(t, http.StatusBadRequest, long.status)
	assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, r.get(t, http.MethodGet, "/api/v1/services?q="+strings.Repeat("x", 80_000)).status)
	status := r.get(t, http.MethodGet, "/api/v1/status", "Accept-Encoding", "gzip")
	assert.Equal(t, "gzip", status.header.Get("Content-Encoding"))
}

// Without a token a browser gets the page, which asks for one, and nothing else.
func TestAuthentication(t *testing.T) {
	r := begin(t, &fakeStore{}, func(c *Config) {
		c.NetAddr.Endpoint = "0.0.0.0:0"
		c.Auth = configoptional.Some(confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: tokenID}})
	})
	_, port, err := net.SplitHostPort(r.address.String())
	require.NoError(t, err)
	r.url = "http://127.0.0.1:" + port
	assert.Equal(t, http.StatusOK, r.get(t, http.MethodGet, "/").status)
	paths := []string{"/api/v1/nothing"}
	for path, query := range everyEndpoint {
		paths = append(paths, "/api/v1/"+path+"?"+query)
	}
	for _, path := range paths {
		for _, headers := range [][]string{nil, {"Authorization", "Bearer wrong"}, {"Authorization", "Basic correct-horse"}} {
			got := r.get(t, http.MethodGet, path, headers...)
			assert.Equal(t, http.StatusUnauthorized, got.status, path)
			assert.Contains(t, got.header.Get("WWW-Authenticate"), "Bearer")
			assert.Equal(t, consoleapi.Unauthenticated, reasonOf(t, got).Reason)
			assert.NotContains(t, string(got.body), "correct-horse", "the authenticator's own words stay here")
		}
	}
	// With one, under whatever name.
	got := r.get(t, http.MethodGet, "/api/v1/status", "Authorization", "Bearer correct-horse", "Host", "console.example.com")
	assert.Equal(t, http.StatusOK, got.status)
	assert.Equal(t, []component.ID{store.DefaultID, tokenID}, r.Dependencies())
}

// A page from elsewhere cannot read a console without authenticator by giving
// this machine another name.
func TestOtherHosts(t *testing.T) {
	r := begin(t, &fakeStore{}, func(c *Config) { c.AllowedHosts = []string{"gpu.example.com"} })
	for name, want := range map[string]int{
		"localhost": 200, "LOCALHOST:8480": 200, "127.0.0.1:1": 200, "[::1]:8480": 200, "gpu.example.com": 200, "GPU.example.com:443": 200,
		"evil.example.com": 403, "localhost.example.com": 403, "10.0.0.1": 403,
	} {
		assert.Equal(t, want, r.get(t, http.MethodGet, "/api/v1/status", "Host", name).status, name)
	}
	assert.Equal(t, 403, r.get(t, http.MethodGet, "/api/v1/status", "Host", "localhost", "Origin", "https://evil.example.com").status)
	assert.Equal(t, 403, r.get(t, http.MethodGet, "/api/v1/status", "Host", "localhost", "Sec-Fetch-Site", "cross-site").status)
	assert.Equal(t, 200, r.get(t, http.MethodGet, "/api/v1/status", "Host", "gpu.example.com", "Origin", "https://gpu.example.com").status)
}

// The access log has no secrets, and telemetry has every answer.
func TestWhatIsLoggedAndCounted(t *testing.T) {
	r := begin(t, &fakeStore{}, func(c *Config) { c.AccessLog = true })
	r.get(t, http.MethodGet, "/api/v1/service?namespace=secret-namespace&service=secret-service", "Authorization", "Bearer secret-token")
	r.get(t, http.MethodGet, "/api/v1/services?limit=secret")
	r.get(t, http.MethodGet, "/secret-path")
	lines := r.logs.FilterMessage("request served").All()
	require.Len(t, lines, 3)
	for _, line := range r.logs.All() {
		encoder := zapcore.NewMapObjectEncoder()
		for _, f := range line.Context {
			f.AddTo(encoder)
		}
		for key, v := range encoder.Fields {
			if s, isText := v.(string); isText {
				assert.NotContains(t, s, "secret", key)
			}
		}
	}
	assert.Equal(t, "service", lines[0].ContextMap()["endpoint"])
	assert.EqualValues(t, 404, lines[0].ContextMap()["status"])
	m, err := r.tel.GetMetric("otelcol_extension_gpu_console_requests")
	require.NoError(t, err)
	assert.NotNil(t, m)
	_, err = r.tel.GetMetric("otelcol_extension_gpu_console_circuit_open")
	require.NoError(t, err)
	_, err = r.tel.GetMetric("otelcol_extension_gpu_console_request_duration")
	require.NoError(t, err)
}

func TestStartsThatFail(t *testing.T) {
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	for name, test := range map[string]struct {
		extensions host
		change     func(*Config)
		want       string
	}{
		"no store":        {host{}, nil, `store: there is no extension "gpu_store"`},
		"no store at all": {host{store.DefaultID: token{}}, nil, "is no gpu_store"},
		"no authenticator": {host{store.DefaultID: &fakeStore{}}, func(c *Config) {
			c.Auth = configoptional.Some(confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: tokenID}})
		}, "auth::authenticator"},
		"port taken": {host{store.DefaultID: &fakeStore{}}, func(c *Config) { c.NetAddr.Endpoint = taken.Listener.Addr().String() }, "cannot be listened on"},
	} {
		t.Run(name, func(t *testing.T) {
			config := createDefaultConfig().(*Config)
			config.NetAddr.Endpoint = "localhost:0"
			if test.change != nil {
				test.change(config)
			}
			set := extension.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
			c, err := newExtension(set, config)
			require.NoError(t, err)
			assert.ErrorContains(t, c.Start(t.Context(), test.extensions), test.want)
			require.NoError(t, c.Shutdown(t.Context()))
		})
	}
}

// A request that goes on does not keep the process.
func TestShutdownWhileAnswering(t *testing.T) {
	asked := make(chan struct{}, 1) // the question may come first
	s := &fakeStore{ask: func(ctx context.Context) error {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return store.Errorf(store.Canceled, "canceled")
	}}
	config := createDefaultConfig().(*Config)
	config.NetAddr.Endpoint = "localhost:0"
	set := extension.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	c, err := newExtension(set, config)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), host{store.DefaultID: s}))
	done := make(chan error, 1)
	go func() {
		transport := &http.Transport{DisableKeepAlives: true}
		request, _ := http.NewRequest(http.MethodGet, "http://"+c.address.String()+"/api/v1/services", nil)
		response, err := transport.RoundTrip(request)
		if err == nil {
			err = response.Body.Close()
		}
		done <- err
	}()
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, c.Shutdown(ctx))
	<-done
}
