// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package gputrainingprocessor computes what follows from the metrics of training jobs and the
// devices that they have: how much of the devices' peak a run makes use of, how fast it is, and how
// much of its time makes progress.
//
// The work is a state without clock, goroutine or I/O (internal/training): it takes metrics in,
// gives the figures of all runs out, and is given the time. The processor around it reads the clock,
// holds one mutex while the state works, and holds nothing while it calls the next consumer.
package gputrainingprocessor
