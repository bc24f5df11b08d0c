// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension"

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// failure is an error response.
type failure struct {
	status     int
	retryAfter time.Duration // 0 is not sent
	body       consoleapi.Error
}

func (f *failure) Error() string { return f.body.Error() }

func fail(status int, reason consoleapi.ErrorReason, text, detail string) *failure {
	return &failure{status: status, body: consoleapi.Error{Text: text, Reason: reason, Detail: detail}}
}

func invalid(detail string) *failure {
	return fail(http.StatusBadRequest, consoleapi.InvalidParameter, "A parameter is not as it should be.", detail)
}

func exceeded(detail string) *failure {
	return fail(http.StatusBadRequest, consoleapi.LimitExceeded, "This is more than a limit allows.", detail)
}

func unknownService() *failure {
	return fail(http.StatusNotFound, consoleapi.NotFound, "Nothing is known of this service.", "It may be gone, or its name, namespace or cluster may be another.")
}

func unknownDevice() *failure {
	return fail(http.StatusNotFound, consoleapi.NotFound, "Nothing is known of this node or device.", "It may be gone for longer than remembered, or its name or cluster may be another.")
}

// statusGone is that of a response when its client is gone.
const statusGone = 499

// failed is what an error of the store means for a client of the API. nil is an
// error without a client that waits.
func failed(err error) *failure {
	if f := (*failure)(nil); errors.As(err, &f) {
		return f
	}
	upstream := func(reason consoleapi.ErrorReason, text string) *failure {
		return fail(http.StatusBadGateway, reason, text, sentence(err.Error()))
	}
	switch store.KindOf(err) {
	case store.Canceled:
		return nil
	case store.Timeout:
		return upstream(consoleapi.UpstreamTimeout, "The store did not answer in time.")
	case store.Busy:
		return upstream(consoleapi.UpstreamTimeout, "The store is busy and did not answer in time.")
	case store.TooMuch:
		return upstream(consoleapi.QueryLimit, "The store would have to read more for this than it may.")
	case store.BadQuery:
		return upstream(consoleapi.UpstreamRejected, "The store refused the query.")
	case store.Unavailable:
		if isAnotherServer(err) {
			return upstream(consoleapi.UpstreamInvalid, "What answers is no Prometheus API.")
		}
		return upstream(consoleapi.UpstreamUnreachable, "The store does not answer.")
	default:
		return upstream(consoleapi.UpstreamUnreachable, "The store has failed.")
	}
}

// isAnotherServer reports whether something answers that does not speak the
// Prometheus API. gpu_store has it in its text alone.
func isAnotherServer(err error) bool {
	text := err.Error()
	return strings.Contains(text, "not as Prometheus does") || strings.Contains(text, "is it another server")
}

// sentence makes a text of an error end as sentences do.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "?") {
		s += "."
	}
	return s
}

// storesFault reports whether an error means that the store is not well, which
// the circuit breaker counts. A question that was too large is not its fault.
func storesFault(err error) bool {
	if f := (*failure)(nil); errors.As(err, &f) {
		return false
	}
	switch store.KindOf(err) {
	case store.Timeout, store.Busy, store.Unavailable, store.Internal:
		return true
	default:
		return false
	}
}
