// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package state

// freeBytes is not known on these systems.
func freeBytes(string) (uint64, bool) { return 0, false }
