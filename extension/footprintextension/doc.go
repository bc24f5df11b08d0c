// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package footprintextension returns memory that only start-up needed to the
// operating system: the heap's free pages, and the pages of the binary that are
// mapped but not used.
package footprintextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/footprintextension"
