// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package reloadonchangeextension reloads the Collector's configuration when a file
// changes that its components read only when they start: above all the certificates
// of authorities, which are replaced while agents run.
package reloadonchangeextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/reloadonchangeextension"
