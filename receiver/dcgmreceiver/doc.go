// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package dcgmreceiver scrapes NVIDIA's dcgm-exporter and speaks OpenTelemetry
// names: one resource a device, built from nothing but what the page says about
// the device.
//
// targets.go decides which exporters are scraped and when, fetch.go gets a page.
// internal/pagetext reads it, mostly by what it remembers of the page before, and
// internal/devicemap turns it into device metrics. What both must know of DCGM is in
// internal/dcgm.
package dcgmreceiver

//go:generate mdatagen metadata.yaml
//go:generate go run ./internal/fieldsdoc
