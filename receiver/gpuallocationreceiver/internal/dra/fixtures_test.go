// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dra

import "github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/nodefake"

const (
	nvidia = nodefake.NVIDIA
	gpuA   = nodefake.GPUA
	gpuB   = nodefake.GPUB
	gpuC   = nodefake.GPUC
	migC   = nodefake.MIGC
)

var (
	sliceDevice   = nodefake.SliceDevice
	wholeGPU      = nodefake.WholeGPU
	migDevice     = nodefake.MIGDevice
	resourceSlice = nodefake.ResourceSlice
)
