// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package nvmlreceiver reads NVIDIA's GPUs through the driver's own library, and emits
// OpenTelemetry names: one resource a GPU or MIG instance.
//
// It is thin. The library is loaded by a helper process, which internal/helper starts,
// asks and replaces; internal/host reads what the kernel knows of the boards;
// internal/lifecycle decides which boards are asked and when the driver is left alone;
// internal/nvml maps the answers; internal/xids and internal/processes add what is counted
// and owned.
package nvmlreceiver

//go:generate mdatagen metadata.yaml
//go:generate go run ./internal/fieldsdoc
