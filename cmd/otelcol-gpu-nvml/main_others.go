// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

// Command otelcol-gpu-nvml calls the NVIDIA driver's library for the nvml receiver.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "otelcol-gpu-nvml: runs on Linux alone")
	os.Exit(1)
}
