// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package amdgpureceiver scrapes AMD's Device Metrics Exporter and emits OpenTelemetry
// names: one resource a board or partition.
//
// It is thin: internal/scrape at the root fetches and reads the pages and maps them, for
// all vendors alike. What it must know of AMD's exporter is in internal/amd.
package amdgpureceiver

//go:generate mdatagen metadata.yaml
//go:generate go run ./internal/fieldsdoc
