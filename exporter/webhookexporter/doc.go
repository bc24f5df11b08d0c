// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package webhookexporter sends events (log records with an event name) to
// webhooks and writes an audit record of every delivery.
//
// ConsumeLogs copies what a receiver wants to know out of the pipeline's data
// and puts it into that receiver's queue; it waits for nobody. Workers take
// deliveries from there, build and sign the request, send it once, and hand an
// audit record to the sinks. Receivers share nothing but the guard that decides
// which addresses may be dialled.
package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"
