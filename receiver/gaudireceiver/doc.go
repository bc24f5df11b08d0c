// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package gaudireceiver scrapes Intel's Gaudi metric exporter and emits OpenTelemetry
// names: one resource a device, built from nothing but the page's rows of the device.
//
// It is thin: internal/scrape at the root fetches and reads the pages and maps them, for
// all vendors alike. What it must know of the exporter is in internal/gaudi.
package gaudireceiver

//go:generate mdatagen metadata.yaml
//go:generate go run ./internal/fieldsdoc
