// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

// Keeper is what an extension offers that also wants the records, such as a
// store that shows them beside the events. It is a copy: the file is the record.
type Keeper interface {
	// KeepAudit takes a record and its sequence number in the audit file, 0
	// where it has none (yet). It is called by several goroutines at once, must
	// not wait, and must neither change nor keep the record.
	KeepAudit(seq uint64, r *Record)
}
