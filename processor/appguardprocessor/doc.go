// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package appguardprocessor guards what the telemetry of applications may do to that
// of GPUs: it drops names that are not theirs, and bounds how much each of them and
// all together may send.
package appguardprocessor // import "github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor"
