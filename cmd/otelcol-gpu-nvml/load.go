// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"github.com/otelcol-gpu/otelcol-gpu/cmd/otelcol-gpu-nvml/internal/library"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/otelcol-gpu-nvml/internal/nvml"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/otelcol-gpu-nvml/internal/serve"
)

// loaded is a library as serve uses it.
type loaded struct{ *nvml.Library }

func (l loaded) Caller(announce nvml.Announce) serve.Caller { return l.Library.Caller(announce) }

// load loads the library at a path, or where the driver usually is.
func load(path string) (serve.Library, string, []string) {
	lib, tried, err := nvml.Open(path, library.Folders())
	switch {
	case err == nil:
		return loaded{lib}, lib.Path(), nil
	case len(tried) == 0:
		tried = []string{err.Error()}
	}
	return nil, "", tried
}
