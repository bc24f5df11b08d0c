// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/nodefake"
)

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

// long is for what does answer.
const long = 30 * time.Second

var (
	lines         = nodefake.Lines
	replicas      = nodefake.Replicas
	holds         = nodefake.Holds
	claimsOf      = nodefake.ClaimsOf
	wholeGPU      = nodefake.WholeGPU
	resourceSlice = nodefake.ResourceSlice
	allocated     = nodefake.Allocated
	nodeOf        = nodefake.Object
)
