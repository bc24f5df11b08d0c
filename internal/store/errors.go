// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package store // import "github.com/otelcol-gpu/otelcol-gpu/internal/store"

import (
	"errors"
	"fmt"
)

// Kind is where the cause of an error lies.
type Kind string

const (
	BadQuery    Kind = "bad_data"    // the question cannot be understood
	TooMuch     Kind = "execution"   // it cannot be answered within the limits, or at all
	Timeout     Kind = "timeout"     // it took too long
	Busy        Kind = "busy"        // no turn came within the time that a query has
	Canceled    Kind = "canceled"    // who asked has gone
	Unavailable Kind = "unavailable" // the store is not open, or the server does not answer as one should
	ReadOnly    Kind = "read_only"   // samples for a store that takes none
	Internal    Kind = "internal"    // the store itself failed
)

// Error is an error of a store. Its text can be shown to any client: it holds
// no secret.
type Error struct {
	Kind Kind
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error of a kind.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// KindOf returns the kind of an error, Internal if it has none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}
