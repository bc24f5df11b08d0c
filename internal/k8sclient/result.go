// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package k8sclient

import (
	"context"
	"errors"
	"io"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Result is how a request to the API ended, as telemetry names it. A component may
// have values of its own.
type Result string

const (
	ResultOK        Result = "ok"
	ResultDenied    Result = "denied"
	ResultNotServed Result = "not_served" // of list and watch; of get: there is no such object, or no such kind
	ResultNoAnswer  Result = "no_answer"
	ResultTimeout   Result = "timeout"
	ResultFailed    Result = "failed"
)

// ResultOf names the cause of a failed request; nil is ResultOK.
func ResultOf(err error) Result {
	var netErr net.Error
	switch {
	case err == nil:
		return ResultOK
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return ResultDenied
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return ResultNotServed
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return ResultTimeout
	case errors.As(err, &netErr):
		if netErr.Timeout() {
			return ResultTimeout
		}
		return ResultNoAnswer
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return ResultNoAnswer
	default:
		return ResultFailed
	}
}
