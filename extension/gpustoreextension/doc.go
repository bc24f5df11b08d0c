// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package gpustoreextension keeps metrics, events and deliveries for the
// console: in Prometheus' TSDB in the process, or on a server that speaks
// Prometheus' API. Components find it through internal/store.
package gpustoreextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension"
