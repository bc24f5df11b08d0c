// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml
//go:generate go run ./internal/rulesdoc

// Package gpueventsconnector turns metrics into events: log records that report
// that a condition was raised or cleared. internal/rules has a file for each event,
// internal/engine the state of all rules, without clock, goroutine or I/O.
package gpueventsconnector
