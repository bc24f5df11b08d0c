// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package requestlimitextension bounds the requests that HTTP and gRPC servers of
// the Collector work on at once, before their bodies are read.
package requestlimitextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/requestlimitextension"
