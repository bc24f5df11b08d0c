// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

const (
	probesAtOnce   = 8
	maxProxyAnswer = 16 << 10 // bytes
)

// Probe is how far a receiver can be reached without telling it anything.
type Probe struct {
	Receiver string
	// Scheme and Host are all that may be shown of its URL.
	Scheme, Host string
	// Proxied is whether the way leads through proxy_url.
	Proxied bool
	// Error is empty where it was reached, else what an audit record would say.
	Error audit.ErrorType
	// Problem says in words why no attempt was made: a receiver's configuration
	// that is refused. It never holds the URL.
	Problem string
}

// Probe looks up every receiver, those of receivers_dir too, and connects to it
// as a delivery would: by the same rules for addresses, through the same proxy,
// with a TLS handshake. It sends no request, so no receiver is told anything.
// An error is a configuration that the exporter refuses as a whole.
func (c *Config) Probe(ctx context.Context) ([]Probe, error) {
	return c.probe(ctx, environment{})
}

func (c *Config) probe(ctx context.Context, env environment) ([]Probe, error) {
	g, err := newReach(c)
	if err != nil {
		return nil, err
	}
	var targets []*target
	var probes []Probe
	taken := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(c.Receivers)) {
		taken[name] = true
		t, err := newTarget(name, c.Receivers[name])
		if err != nil {
			if !receiverName.MatchString(name) {
				name = "…" // it may be a URL in the wrong place
			}
			probes = append(probes, Probe{Receiver: name, Error: audit.ErrorConfig, Problem: err.Error()})
			continue
		}
		targets = append(targets, t)
	}
	if c.ReceiversDir != "" {
		found, err := newReceiversDir(c.ReceiversDir, taken, g).scan()
		if err != nil {
			return nil, fmt.Errorf("receivers_dir: %w", err)
		}
		targets = append(targets, found.targets...)
		for _, f := range found.findings {
			if f.reason != skipNone {
				probes = append(probes, Probe{Receiver: f.name, Error: audit.ErrorConfig, Problem: "its file in receivers_dir " + f.text})
			}
		}
	}
	results := make([]Probe, len(targets))
	var wg sync.WaitGroup
	slots := make(chan struct{}, probesAtOnce)
	for i, t := range targets {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() {
				<-slots
				if recover() != nil { // it must not cost the others
					results[i] = Probe{Receiver: t.name, Error: audit.ErrorConfig, Problem: "to look at it broke: a defect, please report it"}
				}
			}()
			results[i] = probe(ctx, t, g, env)
		})
	}
	wg.Wait()
	return append(results, probes...), nil
}

func probe(lifetime context.Context, t *target, g *guard, env environment) Probe {
	ctx, cancel := context.WithTimeout(lifetime, t.timeout)
	defer cancel()
	p := Probe{Receiver: t.name, Scheme: t.url.Scheme, Host: t.url.Hostname(), Proxied: g.proxy != nil}
	// Without a proxy the guard judges what is dialled.
	if g.proxy != nil {
		if err := checkThroughProxy(t); err != nil {
			p.Error = audit.ErrorSSRFBlocked
			return p
		}
	}
	if tlsFailed, err := reach(ctx, t, g, newTransport(t, g, env)); err != nil {
		p.Error = classify(err, tlsFailed, context.Background(), ctx)
	}
	return p
}

// reach connects and closes again.
func reach(ctx context.Context, t *target, g *guard, transport *http.Transport) (tlsFailed bool, err error) {
	address := net.JoinHostPort(t.host, strconv.Itoa(int(t.port)))
	first := address
	if g.proxy != nil {
		port := g.proxy.Port()
		if port == "" {
			port = strconv.Itoa(int(proxyPorts[g.proxy.Scheme]))
		}
		first = net.JoinHostPort(g.proxy.Hostname(), port)
	}
	conn, err := transport.DialContext(ctx, "tcp", first)
	if err != nil {
		return false, err
	}
	defer func() { conn.Close() }()
	if g.proxy != nil {
		switch g.proxy.Scheme {
		case "https":
			if conn, err = handshake(ctx, conn, g.proxy.Hostname(), transport.TLSClientConfig); err != nil {
				return true, err
			}
		case "http":
		default:
			return false, nil // of a SOCKS proxy no more is asked
		}
		if t.url.Scheme == "http" {
			return false, nil // it would be sent the request itself
		}
		if err := tunnel(conn, g.proxy, address); err != nil {
			return false, err
		}
	}
	if t.url.Scheme == "https" {
		if conn, err = handshake(ctx, conn, t.host, transport.TLSClientConfig); err != nil {
			return true, err
		}
	}
	return false, nil
}

// handshake returns a connection that can be closed whatever the error.
func handshake(ctx context.Context, conn net.Conn, host string, base *tls.Config) (net.Conn, error) {
	cfg := base.Clone()
	cfg.ServerName = host
	secure := tls.Client(conn, cfg)
	return secure, secure.HandshakeContext(ctx)
}

var errProxyRefused = errors.New("the proxy refuses")

// tunnel asks a proxy for the way to an address.
func tunnel(conn net.Conn, proxy *url.URL, address string) error {
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if proxy.User != nil {
		password, _ := proxy.User.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(proxy.User.Username()+":"+password)))
	}
	if err := req.Write(conn); err != nil {
		return err
	}
	// Nothing follows the answer until we speak: the buffer swallows nothing.
	resp, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, maxProxyAnswer)), req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errProxyRefused
	}
	return nil
}
