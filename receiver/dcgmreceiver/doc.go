// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package dcgmreceiver scrapes NVIDIA's dcgm-exporter and speaks OpenTelemetry
// names: one resource a device, built from nothing but what the page says about
// the device.
//
// Scraping is contrib's prometheusreceiver's; internal/mapping turns its pages
// into device metrics by the table in internal/fields.
package dcgmreceiver

//go:generate mdatagen metadata.yaml
//go:generate go run ./internal/fieldsdoc
