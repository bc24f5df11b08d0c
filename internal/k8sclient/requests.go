// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package k8sclient

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// Requests reports how the requests about one kind of object end: Count gets each
// result, the log each cause of failure once in logonce.Every. It is not safe for
// concurrent use.
type Requests struct {
	Object  string                                               // the kind, as telemetry names it
	Count   func(ctx context.Context, object string, res Result) // required
	Logger  *zap.Logger                                          // required
	Failure string                                               // the log's message: what is missing without the objects
	Remedy  func(object string, res Result) (remedy string)      // required

	failing bool
	last    Result
	logged  logonce.Causes
}

// maxCause bounds the text of an error in the log, in bytes.
const maxCause = 500

// Ended takes note of how a request ended; err is nil with ResultOK alone. A request
// that ends together with ctx was shut down, which is no result.
func (r *Requests) Ended(ctx context.Context, res Result, err error) {
	if ctx.Err() != nil {
		return
	}
	r.Count(ctx, r.Object, res)
	recovered, last := r.failing && res == ResultOK, r.last
	r.failing, r.last = res != ResultOK, res
	switch {
	case res == ResultOK:
		if recovered && r.logged.Due("recovered", time.Now()) {
			r.Logger.Info("Kubernetes API answers again", zap.String("object", r.Object))
		}
	case res == ResultNotServed && last == res:
		// A cluster without DRA stays one.
	case r.logged.Due(string(res), time.Now()):
		r.Logger.Warn(r.Failure, zap.String("object", r.Object), zap.String("result", string(res)),
			zap.String("remedy", r.Remedy(r.Object, res)), zap.String("error", safetext.Strip(err.Error(), maxCause)))
	}
}
