// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package inference

// A set takes ten times as long, and what the detector looks for is in each.
func init() { sets = 10 }
