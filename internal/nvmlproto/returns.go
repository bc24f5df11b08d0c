// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlproto

import "strconv"

// What functions of the library return, as far as something depends on it.
const (
	Success                 = 0
	Uninitialized           = 1
	InvalidArgument         = 2
	NotSupported            = 3
	NoPermission            = 4
	NotFound                = 6
	InsufficientSize        = 7
	DriverNotLoaded         = 9
	Timeout                 = 10
	IrqIssue                = 11
	LibraryNotFound         = 12
	FunctionNotFound        = 13
	CorruptedInforom        = 14
	GPUIsLost               = 15
	ResetRequired           = 16
	OperatingSystem         = 17
	LibraryDriverMismatch   = 18
	InUse                   = 19
	Memory                  = 20
	NoData                  = 21
	InsufficientResources   = 23
	ArgumentVersionMismatch = 25
	Deprecated              = 26
	NotReady                = 27
	GPUNotFound             = 28
	InvalidState            = 29
	Unknown                 = 999
)

// ReturnText is a return in own metrics: return_3.
func ReturnText(r int) string { return "return_" + strconv.Itoa(r) }

// Unavailable reports whether a return means that the board, or the driver, does not have
// what was asked for. It is asked again only once the driver or the board's MIG mode has
// changed.
func Unavailable(r int) bool {
	switch r {
	case NotSupported, FunctionNotFound, ArgumentVersionMismatch, Deprecated:
		return true
	}
	return false
}

// Denied reports whether a return means that rights are missing.
func Denied(r int) bool { return r == NoPermission || r == OperatingSystem }

// Lost reports whether a return means that the board has left its bus.
func Lost(r int) bool { return r == GPUIsLost || r == GPUNotFound }

// NeedsNewHelper reports whether a return means that no call succeeds any more in the
// process that made it.
func NeedsNewHelper(r int) bool {
	return r == Uninitialized || r == DriverNotLoaded || r == LibraryDriverMismatch
}
