// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package exporterpage is how the gaudi receiver reads a page of the Gaudi metric exporter,
// for programs that read one page without a receiver.
package exporterpage

import "github.com/otelcol-gpu/otelcol-gpu/receiver/gaudireceiver/internal/gaudi"

// Vendor is what the mapping must know of the exporter, and Exporter what fetching a page
// and remedies must know of it.
var (
	Vendor   = &gaudi.Vendor
	Exporter = &gaudi.Exporter
)
