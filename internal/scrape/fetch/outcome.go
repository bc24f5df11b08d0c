// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext"
)

// Outcome is how reading an exporter's page ended: the values of the attribute
// outcome of a receiver's own metric.
type Outcome string

const (
	OK       Outcome = "ok"
	Connect  Outcome = "connect"
	TLS      Outcome = "tls"
	Timeout  Outcome = "timeout"
	Status   Outcome = "http_status"
	Redirect Outcome = "redirect"
	CutOff   Outcome = "cut_off"
	TooLarge Outcome = "too_large"
	// RateLimited is the answer 429 of an exporter that limits how often it is scraped.
	RateLimited Outcome = "rate_limited"
	Parse       Outcome = "parse"
	// Empty is an answer without any sample.
	Empty Outcome = "empty"
	// NoValue is a page that names devices and has no value of any.
	NoValue Outcome = "no_value"
	// NoDevice is a page of the exporter that names no device, or of which relabelling
	// leaves nothing.
	NoDevice Outcome = "no_device"
)

// ErrTooLarge is a page over scrape::body_size_limit.
var ErrTooLarge = errors.New("body size limit exceeded")

// StatusError is an answer with another status than 200.
type StatusError struct {
	Code int
	Text string // 404 Not Found
}

func (s *StatusError) Error() string { return "server returned HTTP status " + s.Text }

// RedirectError is a redirect that is not followed, To is empty for the last of
// too many.
type RedirectError struct{ To, Within string }

func (r *RedirectError) Error() string {
	if r.To == "" {
		return "redirected more than 10 times within " + r.Within
	}
	return fmt.Sprintf("redirected to %s: only redirects within %s are followed", r.To, r.Within)
}

// FollowWithin is the CheckRedirect of a client for exporters. It refuses
// redirects to another host: a pod with the right labels is taken for an exporter,
// and must not send the agent, which is in the node's network, and its
// credentials to where it cannot go itself.
func FollowWithin(req *http.Request, via []*http.Request) error {
	switch first := via[0].URL; {
	case req.URL.Scheme != first.Scheme || req.URL.Host != first.Host:
		return &RedirectError{req.URL.Scheme + "://" + req.URL.Host, first.Host}
	case len(via) >= 10: // as net/http's own
		return &RedirectError{Within: first.Host}
	}
	return nil
}

// Failed is how reading ended that gave an error: of the connection, of Read, or
// one of this package.
func Failed(err error) Outcome {
	var (
		netErr   net.Error
		status   *StatusError
		redirect *RedirectError
	)
	switch {
	case err == nil:
		return OK
	case errors.Is(err, ErrTooLarge), errors.Is(err, pagetext.ErrLimit):
		return TooLarge
	case errors.Is(err, pagetext.ErrNoPage):
		return Parse
	case errors.Is(err, pagetext.ErrEmpty):
		return Empty
	case errors.As(err, &redirect):
		return Redirect
	case errors.As(err, &status):
		if status.Code/100 == 3 {
			return Redirect
		}
		return Status
	case ofTLS(err):
		return TLS
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return Timeout
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return CutOff
	case errors.As(err, &netErr): // url.Error, which all errors of a connection are in, is one
		return Connect
	}
	return Parse // invalid gzip
}

// Failed is how reading ended that gave an error. RateLimited is an outcome of the
// exporters that have a remedy for it.
func (e *Exporter) Failed(err error) Outcome {
	o := Failed(err)
	if _, limits := e.Remedies[RateLimited]; !limits || o != Status {
		return o
	}
	var status *StatusError
	if errors.As(err, &status) && status.Code == http.StatusTooManyRequests {
		return RateLimited
	}
	return o
}

// Other is the outcome of a page of another program: not_<type of the receiver>.
func (e *Exporter) Other() Outcome { return Outcome("not_" + e.Type) }

// Lacking is the outcome of a page that could be read, by what it lacks.
func (e *Exporter) Lacking(lack devicemap.Lack) Outcome {
	switch lack {
	case devicemap.LacksNothing:
		return OK
	case devicemap.LacksFamilies:
		return e.Other()
	case devicemap.LacksValues:
		return NoValue
	case devicemap.LacksPage:
		return Empty
	default:
		return NoDevice
	}
}

// noTLS are what Go's client finds where one side speaks TLS and the other does not.
var noTLS = []string{"server gave HTTP response to HTTPS client", "first record does not look like a TLS handshake", "malformed HTTP response \"\\x15\\x03"}

func ofTLS(err error) bool {
	var (
		record  tls.RecordHeaderError
		alert   tls.AlertError
		verify  *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
	)
	if errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &verify) || errors.As(err, &unknown) {
		return true
	}
	for _, text := range noTLS {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}
