// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package gpueventsconnector turns metrics into events: log records that say
// that a condition was raised or cleared.
package gpueventsconnector
