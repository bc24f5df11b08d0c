// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// RowRemapFailure is gpu.row_remap.failure.
var RowRemapFailure = flag{
	event: names.EventRowRemapFailure, metric: &names.GPURowRemapFailure, severity: plog.SeverityNumberError,
	on:  "could not remap a broken memory row: the board has to be replaced",
	off: "no longer reports that remapping a memory row failed",
}.rule("ERROR")

// RowRemapPending is gpu.row_remap.pending.
var RowRemapPending = flag{
	event: "gpu.row_remap.pending", metric: &names.GPURowRemapPending, severity: plog.SeverityNumberWarn,
	on:  "has a memory row that waits for a reset to be remapped: reset the GPU when it is free",
	off: "has no memory row left that waits for a reset to be remapped",
}.rule("WARN")
