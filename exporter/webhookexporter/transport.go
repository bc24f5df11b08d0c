// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

const (
	maxResponseBody   = 4 << 10
	maxResponseHeader = 16 << 10
)

// environment is what tests put in the place of the machine's own.
type environment struct {
	resolver *net.Resolver
	rootCAs  *x509.CertPool
}

// newTransport makes the transport of one receiver. There is no proxy but the
// one that the configuration names, whatever the environment says: through one,
// the guard only sees the proxy.
// HTTP/2 stays off: it repeats refused requests on its own, and one attempt
// means one.
//
// A connection serves one delivery. On one that waits for the next, net/http
// writes to the process's own log whatever the receiver says meanwhile, which
// could forge an audit line; and a delivery that finds its connection just
// closed by the receiver would be lost.
//
// The transport lets a dial or a handshake go on when its request is over, for
// as long as the receiver's timeout. CloseIdleConnections ends those too. What
// a proxy is asked for has no such limit of its own, so the connection has one.
func newTransport(t *target, g *guard, env environment) *http.Transport {
	dialer := &net.Dialer{Timeout: t.timeout, Control: g.control, Resolver: env.resolver}
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
			// Later than the attempt's own end, which is what is told.
			if err := conn.SetDeadline(time.Now().Add(t.timeout + time.Second)); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			return conn, nil
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: env.rootCAs},
		TLSHandshakeTimeout:    t.timeout,
		Protocols:              protocols,
		DisableCompression:     true,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: maxResponseHeader,
	}
}

// result is what one attempt came to.
type result struct {
	status    int
	errorType audit.ErrorType
	peer      string
	durations audit.Durations
	// retryAfter is what the receiver asked for, bounded; 0 if it did not.
	retryAfter time.Duration
}

// post makes one attempt. It calls the transport itself, not an http.Client, so
// there is nothing that could follow a redirect or keep a cookie.
func post(lifetime context.Context, transport http.RoundTripper, t *target, header http.Header, body []byte) result {
	tr := newTrace() // before the deadline: no attempt is shorter than its timeout
	ctx, cancel := context.WithTimeout(lifetime, t.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(tr.attach(ctx), http.MethodPost, t.url.String(), bytes.NewReader(body))
	if err != nil {
		return tr.result(0, audit.ErrorConfig)
	}
	req.Header = header
	if t.user != nil {
		password, _ := t.user.Password()
		req.SetBasicAuth(t.user.Username(), password)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return tr.result(0, classify(err, tr.tlsFailed(), lifetime, ctx))
	}
	// The status decides. A short response is read to its end only so that its
	// sender sees an orderly end; a long one is cut off. After 101 Switching
	// Protocols the body is the connection itself, which no timeout ends.
	if resp.StatusCode >= 200 {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxResponseBody))
	}
	_ = resp.Body.Close()
	res := tr.result(resp.StatusCode, classifyStatus(resp.StatusCode))
	res.retryAfter = retryAfter(resp.Header, time.Now())
	return res
}

// classify says which of the closed list an attempt without a response is. The
// error itself goes no further: it may quote what must not be shown.
func classify(err error, tlsFailed bool, lifetime, attempt context.Context) audit.ErrorType {
	var dns *net.DNSError
	var op *net.OpError
	var timeout net.Error
	switch {
	case errors.Is(err, errBlocked):
		return audit.ErrorSSRFBlocked
	case lifetime.Err() != nil:
		return audit.ErrorShutdown
	case attempt.Err() != nil:
		return audit.ErrorTimeout
	case errors.As(err, &dns):
		return audit.ErrorDNS
	case errors.As(err, &timeout) && timeout.Timeout():
		return audit.ErrorTimeout
	case tlsFailed:
		return audit.ErrorTLS
	case errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error"):
		return audit.ErrorTLS // an alert after the handshake, as for a missing client certificate
	default:
		return audit.ErrorConnect
	}
}

func classifyStatus(status int) audit.ErrorType {
	switch {
	case status >= 200 && status < 300:
		return audit.ErrorNone
	case status < 200: // a final answer cannot be informational
		return audit.ErrorConnect
	case status < 400:
		return audit.ErrorRedirect
	case status == http.StatusGone:
		return audit.ErrorGone
	case status == http.StatusTooManyRequests:
		return audit.ErrorRateLimited
	case status < 500:
		return audit.ErrorHTTP4xx
	default:
		return audit.ErrorHTTP5xx
	}
}
