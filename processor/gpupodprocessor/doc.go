// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package gpupodprocessor puts the Kubernetes identity of a device's owner on
// the device's telemetry, by joining it with gpu.allocation, and ends the series
// of a device that changes hands.
package gpupodprocessor
