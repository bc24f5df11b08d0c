// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/egress"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// A receiver is reached, or not, for the reason that its audit records would
// have, and nothing is sent to it.
func TestProbe(t *testing.T) {
	written := func(http.ResponseWriter, *http.Request) { t.Error("a probe sends no request") }
	plain := httptest.NewServer(http.HandlerFunc(written))
	t.Cleanup(plain.Close)
	secure := httptest.NewTLSServer(http.HandlerFunc(written))
	t.Cleanup(secure.Close)
	trusted := egress.Network{RootCAs: x509.NewCertPool()}
	trusted.RootCAs.AddCert(secure.Certificate())
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, sends nothing
	require.NoError(t, err)
	t.Cleanup(func() { silent.Close() })

	loopback := []string{"127.0.0.0/8"}
	for name, tt := range map[string]struct {
		url   string
		env   egress.Network
		cidrs []string
		want  audit.ErrorType
	}{
		"reached":          {plain.URL + "/secret", egress.Network{}, loopback, audit.ErrorNone},
		"reached over TLS": {secure.URL + "/secret", trusted, loopback, audit.ErrorNone},
		"not trusted":      {secure.URL + "/secret", egress.Network{}, loopback, audit.ErrorTLS},
		"blocked":          {plain.URL + "/secret", egress.Network{}, nil, audit.ErrorSSRFBlocked},
		"metadata":         {"http://169.254.169.254/secret", egress.Network{}, loopback, audit.ErrorSSRFBlocked},
		"closed port":      {"http://" + gone.Addr().String() + "/secret", egress.Network{}, loopback, audit.ErrorConnect},
		"no handshake":     {"https://" + silent.Addr().String() + "/secret", egress.Network{}, loopback, audit.ErrorTimeout},
		"not an HTTP URL":  {"ftp://secret.example/", egress.Network{}, loopback, audit.ErrorConfig},
	} {
		t.Run(name, func(t *testing.T) {
			c := createDefaultConfig().(*Config)
			c.AllowCIDRs = tt.cidrs
			r := to(tt.url)
			if tt.want == audit.ErrorTimeout {
				r.Timeout = 50 * time.Millisecond
			}
			c.Receivers = only(r)
			probes, err := c.probe(t.Context(), tt.env)
			require.NoError(t, err)
			require.Len(t, probes, 1)
			assert.Equal(t, tt.want, probes[0].Error)
			assert.Equal(t, "ops", probes[0].Receiver)
			assert.NotContains(t, probes[0].Host+probes[0].Scheme+probes[0].Problem, "secret")
		})
	}
}

func TestProbeNames(t *testing.T) {
	c := createDefaultConfig().(*Config)
	c.Receivers = only(to("https://hooks.example/secret"))
	probes, err := c.probe(t.Context(), egress.Network{Resolver: nameServer(t, map[string][]string{"hooks.example": {"10.1.2.3"}})})
	require.NoError(t, err)
	assert.Equal(t, audit.ErrorSSRFBlocked, probes[0].Error, "a public name that leads inside")
	probes, err = c.probe(t.Context(), egress.Network{Resolver: nameServer(t, nil)})
	require.NoError(t, err)
	assert.Equal(t, audit.ErrorDNS, probes[0].Error)
}

func TestProbeThroughAProxy(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a probe sends no request") }))
	t.Cleanup(secure.Close)
	env := egress.Network{RootCAs: x509.NewCertPool()}
	env.RootCAs.AddCert(secure.Certificate())
	proxy := func(status int) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
			assert.Equal(t, "me hush", user+" "+password)
			assert.Equal(t, http.MethodConnect, r.Method)
			if status != http.StatusOK {
				w.WriteHeader(status)
				return
			}
			inner, err := net.Dial("tcp", r.Host)
			if !assert.NoError(t, err) {
				return
			}
			outer, _, err := http.NewResponseController(w).Hijack()
			if !assert.NoError(t, err) {
				return
			}
			_, _ = outer.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
			go func() { _, _ = io.Copy(inner, outer); inner.Close() }()
			_, _ = io.Copy(outer, inner)
			outer.Close()
		}))
		t.Cleanup(server.Close)
		return strings.Replace(server.URL, "http://", "http://me:hush@", 1)
	}
	for status, want := range map[int]audit.ErrorType{http.StatusOK: audit.ErrorNone, http.StatusForbidden: audit.ErrorConnect} {
		c := createDefaultConfig().(*Config)
		c.AllowCIDRs = []string{"127.0.0.0/8"}
		c.ProxyURL = configopaque.String(proxy(status))
		c.Receivers = only(to(secure.URL + "/secret"))
		probes, err := c.probe(context.Background(), env)
		require.NoError(t, err)
		assert.Equal(t, want, probes[0].Error)
		assert.True(t, probes[0].Proxied)
	}
}

func TestProbeOfAFolder(t *testing.T) {
	f := newFiles(t)
	hook := newHook(t, nil)
	f.write("fine", hook.URL+"/secret")
	f.write("broken", "ftp://secret.example")
	c := createDefaultConfig().(*Config)
	c.AllowCIDRs = []string{"127.0.0.0/8"}
	c.ReceiversDir = f.path
	probes, err := c.Probe(t.Context())
	require.NoError(t, err)
	require.Len(t, probes, 2)
	assert.Equal(t, Probe{Receiver: "fine", Scheme: "http", Host: "127.0.0.1"}, probes[0])
	assert.Equal(t, "broken", probes[1].Receiver)
	assert.Equal(t, audit.ErrorConfig, probes[1].Error)
	assert.NotContains(t, probes[1].Problem, "secret")

	c.ReceiversDir = f.path + "-gone"
	_, err = c.Probe(t.Context())
	assert.ErrorContains(t, err, "receivers_dir")
}
