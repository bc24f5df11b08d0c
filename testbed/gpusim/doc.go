// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package gpusim simulates a fleet of GPU nodes as dcgm-exporter shows them:
// pages of several exporter versions, load curves, pods, MIG and scripted
// faults, and it serves the truth behind the pages.
//
// Everything is deterministic. The page of a node at a time is a function of
// the seed, the configuration, the faults and the time since the start; values
// stand still within one second and counters are sums over whole seconds.
package gpusim
