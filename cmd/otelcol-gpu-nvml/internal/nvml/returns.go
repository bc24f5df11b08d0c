// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import "strconv"

// Return is what a function of the library returns (nvmlReturn_t).
type Return int32

// The returns that are treated in a way of their own. Any other is a failure of this time.
const (
	Success           Return = 0
	Uninitialized     Return = 1
	InvalidArgument   Return = 2
	NotSupported      Return = 3
	NoPermission      Return = 4
	NotFound          Return = 6
	InsufficientSize  Return = 7
	DriverNotLoaded   Return = 9
	Timeout           Return = 10
	FunctionNotFound  Return = 13 // also where the library has no such symbol
	GPULost           Return = 15
	OperatingSystem   Return = 17 // access to the device is blocked, by a cgroup for instance
	LibraryMismatch   Return = 18 // of library and kernel module
	VersionMismatch   Return = 25 // of a structure
	Deprecated        Return = 26
	GPUNotFound       Return = 28
	Unknown           Return = 999
	unavailableNumber        = -1 // of a process's memory that the driver does not know
)

// Unavailable is whether the same call gives the same answer until the driver or the MIG
// mode changes: the board, the driver or the library has no such value.
func (r Return) Unavailable() bool {
	switch r {
	case NotSupported, FunctionNotFound, VersionMismatch, Deprecated:
		return true
	}
	return false
}

// Refused is whether a right is missing, which can be granted while the program runs.
func (r Return) Refused() bool { return r == NoPermission || r == OperatingSystem }

// Lost is whether the board is no longer there.
func (r Return) Lost() bool { return r == GPULost || r == GPUNotFound }

// Unusable is whether the library answers nothing any more, for no board.
func (r Return) Unusable() bool {
	return r == Uninitialized || r == DriverNotLoaded || r == LibraryMismatch
}

// String returns the number: the text is ErrorString's.
func (r Return) String() string { return strconv.Itoa(int(r)) }
