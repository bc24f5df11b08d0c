// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package footprintextension gives memory back to the system that only the start
// of the process needed: the heap's free pages, and the pages of the binary that
// are mapped but not used.
package footprintextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/footprintextension"
