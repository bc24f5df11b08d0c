// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package requestlimitextension limits the requests that HTTP and gRPC servers of
// the Collector process at once, before their bodies are read.
package requestlimitextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/requestlimitextension"
