// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package gpuallocationreceiver reports the owners of the GPUs of its node: it queries the
// kubelet's pod-resources API and emits gpu.allocation.
package gpuallocationreceiver

//go:generate mdatagen metadata.yaml
