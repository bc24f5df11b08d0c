// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import "github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/nodefake"

type (
	node = nodefake.Node
	pod  = nodefake.Pod
)

const (
	gpuName = nodefake.GPUName
	gpuA    = nodefake.GPUA
)

var (
	holds = nodefake.Holds
)
