// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package gpustoreexporter writes metrics and events into the gpu_store
// extension: metrics under the names and labels that prometheus_remote_write
// gives them in the shipped configurations, events as they are.
package gpustoreexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/gpustoreexporter"
