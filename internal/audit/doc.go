// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package audit keeps the records that prove what was sent to webhooks.
package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"
