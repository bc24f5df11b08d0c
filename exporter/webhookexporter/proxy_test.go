// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// forward is an HTTP proxy that goes to one address whatever it is asked for, and
// remembers what that was.
type forward struct {
	*hook
	asked atomic.Pointer[string]
	auth  atomic.Pointer[string]
}

func newForward(t *testing.T, upstream string, tls bool) *forward {
	e := &forward{}
	e.hook = newUnstartedHook(t, nil)
	e.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, auth := r.Method+" "+r.RequestURI, r.Header.Get("Proxy-Authorization")
		e.asked.Store(&asked)
		e.auth.Store(&auth)
		out, err := net.Dial("tcp", upstream)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer out.Close()
		if r.Method != http.MethodConnect {
			require.NoError(t, r.Write(out))
			resp, err := http.ReadResponse(bufio.NewReader(out), r)
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			defer resp.Body.Close()
			w.WriteHeader(resp.StatusCode)
			_, _ = io.Copy(w, resp.Body)
			return
		}
		in, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer in.Close()
		_, _ = in.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
		relay(in, out)
	})
	if tls {
		e.StartTLS()
	} else {
		e.Start()
	}
	return e
}

// relay copies both ways until one side ends.
func relay(a, b net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(a, b)
		a.Close()
	}()
	_, _ = io.Copy(b, a)
	b.Close()
	<-done
}

func through(proxy string) func(*Config, *environment) {
	return func(c *Config, _ *environment) { c.ProxyURL = configopaque.String(proxy) }
}

// The names of receivers are looked up by the proxy, so no resolver knows them.
func TestProxy(t *testing.T) {
	const user = "gpu:pw-SECRET"
	wantAuth := "Basic " + base64.StdEncoding.EncodeToString([]byte(user))
	plain := newHook(t, nil)
	secure := newUnstartedHook(t, nil)
	secure.StartTLS()
	tests := []struct {
		name          string
		url           string
		upstream      *hook
		secureProxy   bool
		asked         string
		viaConnection bool
	}{
		{"http through http", "http://example.com/hook?x=1", plain, false, "POST http://example.com/hook?x=1", false},
		{"https through http", "https://example.com/hook?x=1", secure, false, "CONNECT example.com:443", true},
		{"https through https", "https://example.com/hook?x=1", secure, true, "CONNECT example.com:443", true},
		{"a private name and port", "http://example.com:8080/hook?x=1", plain, false, "POST http://example.com:8080/hook?x=1", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := len(tt.upstream.received())
			proxy := newForward(t, tt.upstream.Listener.Addr().String(), tt.secureProxy)
			address := strings.Replace(proxy.URL, "://", "://"+user+"@", 1)
			h := startHarness(t, only(to(tt.url)), trusting(secure), through(address))
			rec := h.one()
			assert.Equal(t, audit.Succeeded, rec.Outcome, rec.ErrorType)
			assert.Equal(t, tt.asked, *proxy.asked.Load())
			assert.Equal(t, wantAuth, *proxy.auth.Load())
			assert.Equal(t, proxy.Listener.Addr().String(), rec.PeerAddress, "the proxy is who was dialled")
			assert.Equal(t, "example.com", rec.URLHost)
			got := tt.upstream.received()[before:]
			require.Len(t, got, 1)
			assert.Equal(t, "/hook?x=1", got[0].path)
			if tt.viaConnection {
				assert.Empty(t, got[0].header.Get("Proxy-Authorization"), "it is for the proxy alone")
			}
			for _, line := range h.logs.All() {
				assert.NotContains(t, line.Message+fmt.Sprint(line.ContextMap()), "SECRET")
			}
		})
	}
}

func TestSocksProxy(t *testing.T) {
	server := newHook(t, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	asked := make(chan string, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		asked <- serveSocks(conn, server.Listener.Addr().String())
	}()
	rec := startHarness(t, only(to("http://hook.example.test:8080/x")), through("socks5://"+listener.Addr().String())).one()
	assert.Equal(t, audit.Succeeded, rec.Outcome)
	assert.Equal(t, "hook.example.test:8080", <-asked, "the name is the proxy's to look up")
	assert.Equal(t, listener.Addr().String(), rec.PeerAddress)
	assert.Len(t, server.received(), 1)
}

// serveSocks speaks as much SOCKS 5 as one connection without a password needs.
func serveSocks(conn net.Conn, upstream string) string {
	head := make([]byte, 2)
	if _, err := io.ReadFull(conn, head); err != nil {
		return err.Error()
	}
	if _, err := io.ReadFull(conn, make([]byte, head[1])); err != nil {
		return err.Error()
	}
	_, _ = conn.Write([]byte{5, 0})
	request := make([]byte, 5)
	if _, err := io.ReadFull(conn, request); err != nil || request[3] != 3 {
		return fmt.Sprint("no name: ", request, err)
	}
	name := make([]byte, int(request[4])+2)
	if _, err := io.ReadFull(conn, name); err != nil {
		return err.Error()
	}
	_, _ = conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	out, err := net.Dial("tcp", upstream)
	if err != nil {
		return err.Error()
	}
	relay(conn, out)
	return fmt.Sprintf("%s:%d", name[:request[4]], binary.BigEndian.Uint16(name[request[4]:]))
}

func TestProxyFailures(t *testing.T) {
	refused := newHook(t, nil)
	refused.Close()
	answers := func(status int) *hook { return newHook(t, answerWith(status)) }
	hanging := newHook(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	babbling := newHook(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		_, _ = conn.Write([]byte("220 mail.example SMTP\r\n"))
		conn.Close()
	})
	endless := newHook(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		defer conn.Close()
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\n"))
		for {
			if _, err := conn.Write([]byte("X-Filler: " + strings.Repeat("x", 1000) + "\r\n")); err != nil {
				return
			}
		}
	})
	closed := newForward(t, refused.Listener.Addr().String(), false) // its own upstream does not answer
	untrusted := newUnstartedHook(t, nil)
	untrusted.StartTLS()
	tests := []struct {
		name   string
		url    string
		proxy  string
		want   audit.ErrorType
		status int
	}{
		{"proxy refuses the connection", "https://example.com/", refused.URL, audit.ErrorConnect, 0},
		{"proxy refuses the connection, plain", "http://example.com/", refused.URL, audit.ErrorConnect, 0},
		{"407 to CONNECT", "https://example.com/", answers(407).URL, audit.ErrorConnect, 0},
		{"407", "http://example.com/", answers(407).URL, audit.ErrorHTTP4xx, 407},
		{"403 to CONNECT", "https://example.com/", answers(403).URL, audit.ErrorConnect, 0},
		{"redirect to CONNECT", "https://example.com/", answers(302).URL, audit.ErrorConnect, 0},
		{"502 to CONNECT", "https://example.com/", closed.URL, audit.ErrorConnect, 0},
		{"502", "http://example.com/", closed.URL, audit.ErrorHTTP5xx, 502},
		{"hangs at CONNECT", "https://example.com/", hanging.URL, audit.ErrorTimeout, 0},
		{"hangs", "http://example.com/", hanging.URL, audit.ErrorTimeout, 0},
		{"speaks another protocol", "https://example.com/", babbling.URL, audit.ErrorConnect, 0},
		{"answers CONNECT without end", "https://example.com/", endless.URL, audit.ErrorConnect, 0},
		{"says yes and speaks no TLS", "https://example.com/", answers(200).URL, audit.ErrorTLS, 0},
		{"its certificate is not trusted", "https://example.com/", untrusted.URL, audit.ErrorTLS, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := to(tt.url)
			cfg.Timeout = time.Second
			rec := startHarness(t, only(cfg), through(tt.proxy)).one()
			assert.Equal(t, tt.want, rec.ErrorType)
			assert.Equal(t, audit.Failed, rec.Outcome)
			assert.Equal(t, tt.status, rec.Status)
			assert.Equal(t, tt.proxy[strings.Index(tt.proxy, "://")+len("://"):], rec.PeerAddress)
		})
	}
}

// The proxy's own address is judged like any other.
func TestProxyIsGuarded(t *testing.T) {
	trap := newTrap(t, "127.0.0.1:0")
	port := netip.MustParseAddrPort(trap.addr()).Port()
	for name, proxy := range map[string]string{
		"name of loopback": fmt.Sprintf("http://proxy.example.test:%d", port),
		"socks":            fmt.Sprintf("socks5://proxy.example.test:%d", port),
		"https":            fmt.Sprintf("https://proxy.example.test:%d", port),
	} {
		t.Run(name, func(t *testing.T) {
			rec := startHarness(t, only(to("https://example.com/")), through(proxy), func(c *Config, env *environment) {
				c.AllowCIDRs, c.AllowPorts = nil, []int{int(port)}
				env.Resolver = nameServer(t, map[string][]string{"proxy.example.test": {"127.0.0.1"}})
			}).one()
			assert.Equal(t, audit.Blocked, rec.Outcome)
			assert.Equal(t, audit.ErrorSSRFBlocked, rec.ErrorType)
		})
	}
	trap.assertUntouched()
}

func TestValidateProxy(t *testing.T) {
	with := func(proxy string, change ...func(*Config)) *Config {
		c := createDefaultConfig().(*Config)
		c.Receivers = only(to("https://hooks.example.com/x"))
		c.ProxyURL = configopaque.String(proxy)
		c.AllowCIDRs = []string{"10.0.0.0/8"}
		for _, f := range change {
			f(c)
		}
		return c
	}
	for _, proxy := range []string{
		"http://proxy.example.com:3128", "https://u:p@proxy.example.com", "socks5://10.0.0.1:1080", "socks5h://u:p@10.0.0.1", "http://10.0.0.1:3128/", " http://10.0.0.1:3128\n",
	} {
		assert.NoError(t, with(proxy).Validate(), proxy)
	}
	private := func(c *Config) { c.Receivers = only(to("http://192.168.0.1:8080/x")) }
	assert.NoError(t, with("http://10.0.0.1:3128", private).Validate(), "a private address behind the proxy is the proxy's affair")
	assert.Error(t, with("", private).Validate())
	tests := map[string]struct {
		cfg  *Config
		want string
	}{
		"no scheme":       {with("proxy.SECRET.com:3128"), "proxy_url: "},
		"other scheme":    {with("ftp://proxy.SECRET.com"), "proxy_url: must start with"},
		"SOCKS 4":         {with("socks4://proxy.SECRET.com"), "proxy_url: must start with"},
		"no host":         {with("http://SECRET@:3128"), "proxy_url: names no host"},
		"path":            {with("http://proxy.example.com/SECRET"), "proxy_url: has a path"},
		"query":           {with("http://proxy.example.com?SECRET"), "proxy_url: has a path"},
		"unparsable":      {with("http://SECRET%zz@proxy.example.com"), "proxy_url: cannot be parsed"},
		"port":            {with("http://SECRET@proxy.example.com:0"), "proxy_url: has a port"},
		"loopback":        {with("http://SECRET@127.0.0.1:3128"), "proxy_url: its address is private or loopback"},
		"localhost":       {with("http://SECRET@localhost:3128", func(c *Config) { c.AllowCIDRs = nil }), "proxy_url: localhost is private or loopback"},
		"metadata":        {with("http://SECRET@169.254.169.254"), "proxy_url: its address is link-local"},
		"port not open":   {with("http://SECRET@proxy.example.com:3128", func(c *Config) { c.AllowCIDRs = nil }), "proxy_url: port 3128 is not in allow_ports"},
		"SOCKS port":      {with("socks5://SECRET@proxy.example.com", func(c *Config) { c.AllowCIDRs = nil }), "proxy_url: port 1080 is not in allow_ports"},
		"metadata behind": {with("http://10.0.0.1", func(c *Config) { c.Receivers = only(to("http://169.254.169.254/SECRET")) }), "receivers::ops::url: its address may not be asked for"},
		"mapped behind":   {with("http://10.0.0.1", func(c *Config) { c.Receivers = only(to("http://[::ffff:169.254.169.254]/SECRET")) }), "receivers::ops::url: its address may not be asked for"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := tt.cfg.Validate()
			require.ErrorContains(t, err, tt.want)
			assert.NotContains(t, err.Error(), "SECRET")
		})
	}
	// These are never dialled here, but a proxy would resolve them.
	for _, host := range []string{
		"2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "0xA9.254.169.254", "169.254.169.254.", "2852039166.",
		"[64:ff9b::a9fe:a9fe]", "[::169.254.169.254]", "[fd00:ec2::254]",
	} {
		err := with("http://10.0.0.1", func(c *Config) { c.Receivers = only(to("http://" + host + "/SECRET")) }).Validate()
		if assert.ErrorContains(t, err, "receivers::ops::url: its ", host) {
			assert.NotContains(t, err.Error(), "SECRET")
		}
	}
	for _, host := range []string{"hooks2.example.com", "1.example.com", "10.1.2.3", "x1", "[64:ff9b::a01:203]"} {
		assert.NoError(t, with("http://10.0.0.1", func(c *Config) { c.Receivers = only(to("http://" + host + "/x")) }).Validate(), host)
	}
}
