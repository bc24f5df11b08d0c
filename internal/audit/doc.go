// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package audit keeps the records that prove what was sent to webhooks: in a
// log with lines that are chained by digests and vouched for by signed checkpoints.
// README.md describes the lines; docs/audit.md what they prove.
package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"
