// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package webhookexporter sends events (log records with an event name) to
// webhooks and writes an audit record of every delivery.
//
// ConsumeLogs copies what a receiver wants to know out of the pipeline's data,
// stores it where there is a storage extension, and puts it into that receiver's
// queue; it waits for no receiver. Workers take deliveries from there, build and
// sign the request, send it, and hand an audit record to the sinks. What is tried
// again goes back to the queue, which keeps the deliveries of one event key in
// order and no worker waiting. Receivers share nothing but the guard that decides
// which addresses may be dialled, and the storage, for which nothing waits long.
//
// An attempt is: the intent is stored; the request is made; the audit record is
// written; the intent is replaced by what is next. So every attempt has its one
// record, whenever the process ends.
package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"
