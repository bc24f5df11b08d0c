// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package gpuconsoleextension serves the console: a page that shows what the GPUs
// of a fleet do, and the JSON API behind it. It reads a gpu_store.
package gpuconsoleextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension"
