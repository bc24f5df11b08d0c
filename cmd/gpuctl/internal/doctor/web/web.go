// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package web makes single HTTP requests and names in a few words why one failed.
package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

const maxAnswer = 64 << 20 // bytes

// Answer is a response, and when it was asked for and arrived.
type Answer struct {
	Status          int
	Header          http.Header
	Body            []byte
	Asked, Answered time.Time
}

// Get asks without following redirects: where they lead is not what was meant.
func Get(ctx context.Context, client *http.Client, address string, header http.Header) (*Answer, error) {
	return Do(ctx, client, http.MethodGet, address, header, nil)
}

// Do makes a request with a client. Its errors contain no URL.
func Do(ctx context.Context, client *http.Client, method, address string, header http.Header, body io.Reader) (*Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, errors.New("the address cannot be used")
	}
	if header != nil {
		req.Header = header
	}
	a := &Answer{Asked: time.Now()}
	resp, err := client.Do(req)
	if err != nil {
		return nil, Plain(err)
	}
	defer resp.Body.Close()
	a.Answered = time.Now()
	a.Status, a.Header = resp.StatusCode, resp.Header
	if a.Body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1)); err != nil {
		return nil, fmt.Errorf("the answer broke off: %w", Plain(err))
	}
	if len(a.Body) > maxAnswer {
		return nil, fmt.Errorf("the answer is larger than %d bytes: %w", maxAnswer, fetch.ErrTooLarge)
	}
	return a, nil
}

// Direct is a client without a proxy, without redirects, and for one request.
func Direct(tlsConfig *tls.Config) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: tlsConfig},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Plain is the error without the URL that Go puts before it: a query or a path
// may hold a token.
func Plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err
}

// Why names in a few words why a server was not reached.
func Why(err error) string {
	err = Plain(err)
	var dns *net.DNSError
	var netErr net.Error
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &dns):
		return "the name " + dns.Name + " is not known"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return "no answer in time"
	case errors.As(err, &unknown):
		return "its certificate is of an authority that is not trusted"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate is not valid at this time: renew it, or set the clock of this machine"
	case errors.As(err, &host), errors.As(err, &invalid):
		return "its certificate is not valid: " + err.Error()
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"), strings.Contains(err.Error(), "first record does not look like a TLS handshake"):
		return "it speaks no TLS"
	case strings.Contains(err.Error(), "malformed HTTP response"):
		return "it speaks something else than HTTP: TLS, perhaps"
	default:
		return err.Error()
	}
}

// HostOf is all of a URL that is shown.
func HostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "an invalid address"
	}
	return u.Host
}
