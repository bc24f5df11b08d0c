// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package pages // import "github.com/otelcol-gpu/otelcol-gpu/extension/footprintextension/internal/pages"

// Release does nothing: only Linux needs it.
func Release() (int64, error) { return 0, nil }
