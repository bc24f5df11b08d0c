// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package forward is for components that forward from a goroutine of their own.
package forward // import "github.com/otelcol-gpu/otelcol-gpu/internal/forward"

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
)

// Permanent reports whether no component will ever take what err refused. An error of
// several components is permanent if each of theirs is: what one refuses for good
// another may only refuse for now.
func Permanent(err error) bool {
	all, several := err.(interface{ Unwrap() []error })
	if !several {
		return consumererror.IsPermanent(err)
	}
	for _, one := range all.Unwrap() {
		if !Permanent(one) {
			return false
		}
	}
	return true
}

// Ended waits for done: until ctx ends, and then for one second more, in which the call
// under way, which ctx must cancel, can return.
func Ended(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-done:
		return nil
	case <-time.After(time.Second):
		return ctx.Err()
	}
}
