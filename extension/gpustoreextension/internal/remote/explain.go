// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package remote // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/remote"

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// maxText bounds what of a server's own words is passed on.
const maxText = 500

// Errors of responses that are not of the API.
var (
	errTooLarge = errors.New("the answer is too large")
	errNotJSON  = errors.New("the answer is no JSON")
	errRedirect = errors.New("the answer is a redirect")
)

// refused is an answer of a status that the API does not use.
type refused struct{ status int }

func (r refused) Error() string { return http.StatusText(r.status) }

// guard stands before the transport. It refuses what is no answer of the
// Prometheus API before anything reads it, and bounds what is.
type guard struct {
	next  http.RoundTripper
	limit int64
}

// RoundTrip passes answers of the API only.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := g.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case r.Method == http.MethodPost && slices.Contains(postRefused, response.StatusCode):
		// The client asks again with GET.
	case response.StatusCode/100 == 3:
		err = errRedirect
	case slices.Contains(notOfTheAPI, response.StatusCode):
		err = refused{response.StatusCode}
	case kind != "application/json" && response.StatusCode/100 == 2:
		err = errNotJSON
	case kind != "application/json":
		err = refused{response.StatusCode}
	case response.ContentLength > g.limit:
		err = errTooLarge
	}
	if err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	response.Body = &bounded{body: response.Body, left: g.limit}
	return response, nil
}

// Responses of a server that wants a GET, or refuses us, whatever their form.
var (
	postRefused = []int{http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented}
	notOfTheAPI = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusTooManyRequests}
)

// bounded is a body that fails when it is too long.
type bounded struct {
	body io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		// One byte more distinguishes a body of just the limit from a longer one.
		if n, err := b.body.Read(make([]byte, 1)); n == 0 {
			return 0, err
		}
		return 0, errTooLarge
	}
	n, err := b.body.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

func (b *bounded) Close() error { return b.body.Close() }

// explain returns what an error of the client means, and what to do about it.
func (e *Engine) explain(err error) error {
	var (
		answer  *prometheus.Error
		status  refused
		network *url.Error
	)
	unavailable := func(format string, args ...any) error {
		return store.Errorf(store.Unavailable, "%s %s", e.host(), fmt.Sprintf(format, args...))
	}
	switch {
	case errors.Is(err, errTooLarge):
		return store.Errorf(store.TooMuch, "the answer is longer than %d bytes (max_response_bytes): select fewer series or a longer step", e.options.MaxResponse)
	case errors.Is(err, errNotJSON):
		return unavailable("answers, but not as Prometheus does: no JSON. Is it another server, a login page, or is a path missing from url, such as /prometheus?")
	case errors.Is(err, errRedirect):
		return unavailable("answers with a redirect, which is not followed: set url to where it leads")
	case errors.As(err, &status):
		return e.status(status.status)
	case errors.Is(err, context.DeadlineExceeded):
		return store.Errorf(store.Timeout, "%s took longer than a query may (query::timeout is %v)", e.host(), e.options.QueryTimeout)
	case errors.As(err, &answer):
		return e.answered(answer)
	case errors.As(err, &network):
		if network.Timeout() {
			return store.Errorf(store.Timeout, "%s did not answer in time", e.host())
		}
		// Without the URL, which has the whole query in it.
		return unavailable("cannot be reached: %s", safetext.Strip(network.Err.Error(), maxText))
	default:
		return unavailable("answers, but not as Prometheus does: %s", safetext.Strip(err.Error(), maxText))
	}
}

// status returns what a status means that the API does not use.
func (e *Engine) status(status int) error {
	text := fmt.Sprintf("%s answers %d %s", e.host(), status, http.StatusText(status))
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		text += ": set prometheus::auth or prometheus::headers to what it asks for"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		text += ": is it another server, or is a path missing from url, such as /prometheus?"
	case http.StatusTooManyRequests:
		return store.Errorf(store.Busy, "%s: it is asked too often", text)
	}
	return store.Errorf(store.Unavailable, "%s", text)
}

// answered passes on an error of the API.
func (e *Engine) answered(answer *prometheus.Error) error {
	// For most statuses the client leaves the reading to us.
	var detail struct {
		ErrorType prometheus.ErrorType `json:"errorType"`
		Error     string               `json:"error"`
	}
	if json.Unmarshal([]byte(answer.Detail), &detail) == nil && detail.Error != "" {
		answer = &prometheus.Error{Type: detail.ErrorType, Msg: detail.Error}
	}
	text := safetext.Strip(strings.TrimSpace(answer.Msg), maxText)
	switch answer.Type {
	case prometheus.ErrBadData:
		return store.Errorf(store.BadQuery, "%s", text)
	case prometheus.ErrExec:
		return store.Errorf(store.TooMuch, "%s", text)
	case prometheus.ErrTimeout:
		return store.Errorf(store.Timeout, "%s: %s", e.host(), text)
	case prometheus.ErrCanceled:
		return store.Errorf(store.Canceled, "%s: %s", e.host(), text)
	case prometheus.ErrBadResponse:
		return store.Errorf(store.Unavailable, "%s answers, but not as Prometheus does: %s", e.host(), text)
	default:
		return store.Errorf(store.Unavailable, "%s: %s", e.host(), text)
	}
}
