// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package consoleapi has the answers of the console's JSON API as Go types: the
// gpu_console extension writes them, gpuctl reads them. The contract is
// extension/gpuconsoleextension/openapi.yaml, and a test compares the two.
//
// A nil pointer is null: no data. Zero is zero. Ratios are 0 to 1, memory is in
// bytes, power in watts, temperatures in degrees Celsius, durations in seconds.
package consoleapi // import "github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
