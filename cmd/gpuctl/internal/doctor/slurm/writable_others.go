// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package slurm

// writable is not known on these systems, which have no Slurm.
func writable(string) string { return "" }
