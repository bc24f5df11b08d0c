// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package egress // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/egress"

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"
)

const maxResponseHeader = 16 << 10

// Network replaces parts of the machine's own network in tests.
type Network struct {
	Resolver *net.Resolver
	RootCAs  *x509.CertPool
}

// NewTransport makes the transport of one receiver. There is no proxy but the
// one that the configuration names, whatever the environment has: through one,
// the guard only sees the proxy.
// HTTP/2 stays off: it repeats refused requests on its own, and one attempt
// means one.
//
// A connection serves one delivery. On one that waits for the next, net/http
// writes to the process's own log whatever the endpoint sends meanwhile, which
// could forge an audit line; and a delivery that finds its connection just
// closed by the receiver would be lost.
//
// The transport lets a dial or a handshake go on when its request is over, for
// as long as the receiver's timeout. CloseIdleConnections ends those too. What
// a proxy is asked for has no such limit of its own, so the connection has one.
func NewTransport(timeout time.Duration, g *Guard, env Network) *http.Transport {
	dialer := &net.Dialer{Timeout: timeout, Control: g.control, Resolver: env.Resolver}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	var proxy func(*http.Request) (*url.URL, error)
	if g.proxy != nil {
		proxy = http.ProxyURL(g.proxy)
	}
	return &http.Transport{
		Proxy: proxy,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			// Later than the attempt's own end, which is what is reported.
			if err := conn.SetDeadline(time.Now().Add(timeout + time.Second)); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			return conn, nil
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: env.RootCAs},
		TLSHandshakeTimeout:    timeout,
		Protocols:              protocols,
		DisableCompression:     true,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: maxResponseHeader,
	}
}
