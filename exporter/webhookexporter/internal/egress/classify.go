// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package egress // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/egress"

import (
	"context"
	"errors"
	"net"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// Classify returns the error type of an attempt that ended without a response.
// The context is the attempt's: its deadline is the timeout, and the shutdown
// cancels it. The error itself goes no further, since it may quote secrets.
func Classify(err error, tlsFailed bool, attempt context.Context) audit.ErrorType {
	var dns *net.DNSError
	var op *net.OpError
	var timeout net.Error
	switch {
	case errors.Is(err, ErrBlocked):
		return audit.ErrorSSRFBlocked
	case errors.Is(attempt.Err(), context.Canceled):
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
