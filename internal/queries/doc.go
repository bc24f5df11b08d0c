// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package queries is what is asked in PromQL about GPUs and services: metrics
// and labels under the names that Prometheus has for them, and the expressions.
//
// The names are those of translation_strategy UnderscoreEscapingWithSuffixes,
// which all shipped configurations use; a test translates internal/names.
package queries // import "github.com/otelcol-gpu/otelcol-gpu/internal/queries"
