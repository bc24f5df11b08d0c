// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package gpusummaryprocessor averages GPU telemetry over the pods of a service
// and reports how much of the service is seen.
//
// The work is a state machine without clock, goroutine or I/O (internal/summary): it
// takes points in, gives the figures of all services out, and is given the
// time. internal/cluster follows the Kubernetes API and hands it snapshots. The
// processor around them reads the clock, holds one mutex while the state machine
// runs, and holds nothing while it calls the next consumer.
package gpusummaryprocessor
