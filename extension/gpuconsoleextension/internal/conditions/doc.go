// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package conditions decides what needs attention, and why: conditions that
// gpu_events has raised and not cleared, notices, what telemetry shows right now,
// and webhook endpoints that do not get their deliveries. What several of them
// report of one subject is one reason.
package conditions // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/conditions"
