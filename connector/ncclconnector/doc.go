// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package ncclconnector reads what NCCL's Inspector plugin writes about collective operations.
//
// It runs in two scopes. On a node (rank) it reads the lines of files, keeps the metrics of the
// node's ranks, and sends a small sample on. Where the ranks of all nodes meet (communicator) it
// finds the rank that the others wait for.
//
// The work is done in packages without clock, goroutine or I/O:
//
//   - internal/inspector reads lines. What it cannot read it refuses for one cause of a closed list.
//   - internal/rank keeps the ranks of a node, and chooses the sample.
//   - internal/holders keeps who has which devices, from gpu.allocation.
//   - internal/wire has the log records between the scopes.
//   - internal/straggler finds who is late, and internal/stall which job is silent.
//   - internal/communicator brings these together: metrics and events.
//
// The connector around them reads the clock, holds one mutex while they work, and holds nothing
// while it calls the next consumer.
package ncclconnector
