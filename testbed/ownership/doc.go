// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package ownership judges which owner of a GPU the agents report. A Recorder
// keeps every point that they send, a Ledger and a Chronicle what is true and
// when; Judge compares owners, CompareSums sums over physical devices, Follow the
// ends of series. Delays count from the points' own times, so that a busy machine
// that delivers late is not blamed.
package ownership
