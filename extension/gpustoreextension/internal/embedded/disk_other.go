// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !freebsd

package embedded // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/embedded"

// freeBytes is not known here.
func freeBytes(string) (free int64, known bool) { return 0, false }
