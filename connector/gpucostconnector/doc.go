// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package gpucostconnector accounts for GPUs: who held how much of them for how long, how
// much of that was used, what it cost, and how much energy and carbon dioxide it took, of
// every owner and of what nothing owned.
//
// Metrics come in, and metrics and events go out. One rule decides everything else: what
// owners have and what has no owner is together the physical fleet, at every moment and to
// the millisecond. What cannot be known is absent, or in the state unknown; it is never 0
// and never spread over others.
//
// The work is done in packages without clock, goroutine or I/O:
//
//   - internal/intake reads metrics into the ledger: snapshots of gpu.allocation, what is
//     known of nodes and boards, and how busy boards are and what they burn.
//   - internal/share computes which part of its board a device is, as a fraction of two
//     integers: a whole GPU, a replica, a MIG instance by its slices, a software partition
//     by its memory or cores. It divides time and energy by such shares so that the parts
//     add up.
//   - internal/ledger keeps one account for each board. An interval between two snapshots of
//     gpu.allocation belongs to the snapshot at its beginning, and is credited when the
//     snapshot at its end is complete, which is when a later one has begun. Every
//     millisecond of it goes to one of five states: held, free, stranded, unavailable,
//     unknown; and to a row of the totals, of which the key contains the price. Utilization
//     splits held time into used, idle and unmeasured. The energy between two points of a
//     board is divided over the time that its rows had of it.
//   - internal/budget adds up what budgets have used in their periods.
//   - internal/pricing answers what the ledger asks about prices and carbon intensities, from
//     the price book of the module's internal/prices.
//   - internal/output writes totals as metrics, and rows of hours as log records.
//
// The connector around them reads the clock, stores the ledger's state and emits its totals,
// in this order: an amount is emitted only after the state that contains it is stored. So
// after a crash no time counts twice, and no counter falls.
//
// Amounts are integers: milliseconds of a whole GPU, millijoules, micrograms. A price is a
// fraction of billionths of the currency. Rows are kept for each price that held, and priced
// when they are read: a new price changes nothing that was before it.
package gpucostconnector
