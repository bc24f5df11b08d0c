// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package store is what the gpu_store extension offers to other components: a
// metric store that answers PromQL, a log of events and deliveries, and one of usage.
//
// The gpu_store exporter writes into it, gpu_console reads from it, the webhook
// exporter does for deliveries. They find it among the host's extensions
// (Find), so none of them imports another.
package store // import "github.com/otelcol-gpu/otelcol-gpu/internal/store"
