// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package appguardprocessor protects the telemetry of GPUs from that of applications:
// it drops names that are not theirs, and limits how much each of them and all
// together may send.
package appguardprocessor // import "github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor"
