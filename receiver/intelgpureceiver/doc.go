// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package intelgpureceiver scrapes Intel's XPU Manager, 1.x and 2.x, and emits
// OpenTelemetry names: one resource a GPU or tile, built from nothing but the page's
// rows of it.
//
// It is thin: internal/scrape at the root fetches and reads the pages and maps them, for
// all vendors alike. What it must know of XPU Manager is in internal/intel.
package intelgpureceiver

//go:generate mdatagen metadata.yaml
//go:generate go run ./internal/fieldsdoc
