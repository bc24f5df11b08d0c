// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import "github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/nodefake"

type (
	node          = nodefake.Node
	pod           = nodefake.Pod
	container     = nodefake.Container
	claimedDevice = nodefake.Claimed
)

const (
	nvidia  = nodefake.NVIDIA
	gpuName = nodefake.GPUName
	gpuA    = nodefake.GPUA
	gpuB    = nodefake.GPUB
	gpuC    = nodefake.GPUC
	migC    = nodefake.MIGC
)

var (
	lines         = nodefake.Lines
	replicas      = nodefake.Replicas
	holds         = nodefake.Holds
	claimsOf      = nodefake.ClaimsOf
	sliceDevice   = nodefake.SliceDevice
	wholeGPU      = nodefake.WholeGPU
	migDevice     = nodefake.MIGDevice
	resourceSlice = nodefake.ResourceSlice
	nodeOf        = nodefake.Object
)
