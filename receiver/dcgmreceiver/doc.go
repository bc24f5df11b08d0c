// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package dcgmreceiver scrapes NVIDIA's dcgm-exporter and speaks OpenTelemetry
// names: one resource a device, built from nothing but what the page says about
// the device.
//
// targets.go says whom to scrape and when, fetch.go gets a page. internal/page
// reads it, mostly by what it remembers of the page before, and internal/mapping
// turns it into device metrics by the table in internal/fields.
package dcgmreceiver

//go:generate mdatagen metadata.yaml
//go:generate go run ./internal/fieldsdoc
