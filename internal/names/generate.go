// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package names

//go:generate go run ./reference . ../../docs/reference/telemetry.md
