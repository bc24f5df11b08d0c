// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package gpuallocationreceiver says who holds which GPU of its node: it asks the
// kubelet's pod-resources API and emits gpu.allocation.
package gpuallocationreceiver

//go:generate mdatagen metadata.yaml
