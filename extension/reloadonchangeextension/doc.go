// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package reloadonchangeextension has the Collector read its configuration again
// when a file has changed that its components read at their start alone: the
// certificates of authorities above all, which are replaced while agents run.
package reloadonchangeextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/reloadonchangeextension"
