// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package send // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/send"

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/egress"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

const (
	maxResponseBody = 4 << 10

	// MaxRetryAfter bounds what a receiver may ask for, so that a mistake of
	// its cannot silence it for good.
	MaxRetryAfter = time.Hour
	// maxUnnamedPause bounds how long a receiver that answered 429 without
	// Retry-After gets nothing; up to half of it is taken away by chance.
	maxUnnamedPause = time.Minute
)

// RoundTripper is the part of an http.Transport that an endpoint needs.
type RoundTripper interface {
	http.RoundTripper
	CloseIdleConnections()
}

// transportSender makes the request. It calls the transport itself, not an
// http.Client, so nothing follows a redirect or keeps a cookie.
type transportSender struct {
	endpoint  *endpoint.Endpoint
	url       string // of the endpoint
	transport http.RoundTripper
	userAgent string
}

func (s transportSender) Send(ctx context.Context, a *Attempt) Result {
	t := newTrace(a.started)
	req, err := http.NewRequestWithContext(t.attach(ctx), http.MethodPost, s.url, bytes.NewReader(a.body))
	if err != nil {
		return t.result(0, audit.ErrorConfig)
	}
	req.Header = a.header
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", s.userAgent)
	if user := s.endpoint.User; user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return t.result(0, egress.Classify(err, t.tlsFailed(), ctx))
	}
	// The status decides. A short response is read to its end only so that its
	// sender sees an orderly end; a long one is cut off. After 101 Switching
	// Protocols the body is the connection itself, which no timeout ends.
	if resp.StatusCode >= 200 {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxResponseBody))
	}
	_ = resp.Body.Close()
	res := t.result(resp.StatusCode, classifyStatus(resp.StatusCode))
	res.retryAfter = retryAfter(resp.Header, time.Now())
	return res
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

// retryAfter reads the header of that name: seconds, or a date. 0 is for no
// header, a wrong one, and a time that is over; the most is maxRetryAfter.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return 0
	}
	if strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.ParseUint(text, 10, 32)
		if err != nil { // more than that
			return MaxRetryAfter
		}
		return min(time.Duration(seconds)*time.Second, MaxRetryAfter)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), MaxRetryAfter)
}

// limitsRate reports whether the endpoint wants nothing else either for a
// while.
func limitsRate(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// pauseUntil is until when the endpoint gets nothing at all; zero if it gets what
// is due. While it limits the rate, its other deliveries wait too. If it does not
// name a time it is tried again soon, however long the delivery itself waits: that
// wait grows with each attempt, and what happened since must not wait as long.
func pauseUntil(res Result, now time.Time) time.Time {
	switch {
	case limitsRate(res.status) && res.retryAfter > 0:
		return now.Add(res.retryAfter)
	case res.status == http.StatusTooManyRequests && !res.Next.IsZero():
		if soon := now.Add(delivery.UpTo(maxUnnamedPause)); soon.Before(res.Next) {
			return soon
		}
		return res.Next
	default:
		return time.Time{}
	}
}
