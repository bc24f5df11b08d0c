// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package egress // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/egress"

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

const maxProxyAnswer = 16 << 10 // bytes

// Connect looks up the address and connects to it as a delivery does: by the same
// rules, through the same proxy, with a TLS handshake. It sends no request. It
// returns the error type that an attempt would have.
func Connect(lifetime context.Context, a *Address, timeout time.Duration, g *Guard, n Network) audit.ErrorType {
	ctx, cancel := context.WithTimeout(lifetime, timeout)
	defer cancel()
	// Without a proxy the guard judges what is dialled.
	if g.proxy != nil && checkThroughProxy(a) != nil {
		return audit.ErrorSSRFBlocked
	}
	if tlsFailed, err := reach(ctx, a, g, NewTransport(timeout, g, n)); err != nil {
		return Classify(err, tlsFailed, ctx)
	}
	return audit.ErrorNone
}

// reach connects and closes again.
func reach(ctx context.Context, a *Address, g *Guard, transport *http.Transport) (tlsFailed bool, err error) {
	address := net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port)))
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
		if a.URL.Scheme == "http" {
			return false, nil // it would be sent the request itself
		}
		if err := tunnel(conn, g.proxy, address); err != nil {
			return false, err
		}
	}
	if a.URL.Scheme == "https" {
		if conn, err = handshake(ctx, conn, a.Host, transport.TLSClientConfig); err != nil {
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
