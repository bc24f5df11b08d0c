// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !freebsd

package embedded // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/embedded"

// FreeBytes is not known here.
func FreeBytes(string) (free int64, known bool) { return 0, false }
