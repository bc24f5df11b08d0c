// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package slurmallocationreceiver reports which job of Slurm has which GPU of its node: it reads
// the files that Prolog and Epilog write and remove, and emits gpu.allocation.
package slurmallocationreceiver

//go:generate mdatagen metadata.yaml
