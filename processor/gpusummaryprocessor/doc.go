// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package gpusummaryprocessor averages GPU telemetry over the pods of a service
// and says how much of the service is seen.
//
// The work is a state machine without clock, goroutine or I/O (state): observe
// takes points in, evaluate takes the figures of all services out, and both are
// told what time it is. The processor around it reads the clock, holds one mutex
// while the state machine runs, and holds nothing while it calls the next
// consumer.
package gpusummaryprocessor
