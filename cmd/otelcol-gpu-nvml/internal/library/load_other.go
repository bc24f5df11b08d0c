// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || (!amd64 && !arm64)

package library

const supported = false

func load(string) (uintptr, error) { return 0, nil }

func find(uintptr, string) (Function, bool) { return nil, false }

func loadedFrom(name string) string { return name }
