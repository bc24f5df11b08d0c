// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"strconv"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// Return is what a function of the library returns (nvmlReturn_t).
type Return int32

// The returns that are treated in a way of their own here. Any other is a failure of this
// time.
const (
	Success          Return = nvmlproto.Success
	InvalidArgument  Return = nvmlproto.InvalidArgument
	NotSupported     Return = nvmlproto.NotSupported
	NotFound         Return = nvmlproto.NotFound
	InsufficientSize Return = nvmlproto.InsufficientSize
	Timeout          Return = nvmlproto.Timeout
	FunctionNotFound Return = nvmlproto.FunctionNotFound // also where the library has no such symbol
	Unknown          Return = nvmlproto.Unknown
)

// Unavailable is whether the same call gives the same answer until the driver or the MIG
// mode changes: the board, the driver or the library has no such value.
func (r Return) Unavailable() bool { return nvmlproto.Unavailable(int(r)) }

// Denied is whether a right is missing, which can be granted while the program runs.
func (r Return) Denied() bool { return nvmlproto.Denied(int(r)) }

// Lost is whether the board is no longer there.
func (r Return) Lost() bool { return nvmlproto.Lost(int(r)) }

// Unusable is whether the library answers nothing any more, for no board.
func (r Return) Unusable() bool {
	switch r {
	case nvmlproto.Uninitialized, nvmlproto.DriverNotLoaded, nvmlproto.LibraryDriverMismatch:
		return true
	}
	return false
}

// String returns the number: the text is ErrorString's.
func (r Return) String() string { return strconv.Itoa(int(r)) }
