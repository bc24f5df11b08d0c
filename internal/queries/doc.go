// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package queries is what is asked in PromQL about GPUs and services: metrics
// and labels under the names that Prometheus has for them, and the expressions.
//
// The names of metrics are computed from internal/names.
package queries // import "github.com/otelcol-gpu/otelcol-gpu/internal/queries"
