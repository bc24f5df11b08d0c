// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package names

// Values of gpu.event.state.
const (
	EventRaised  = "raised"
	EventCleared = "cleared"
)

// Attributes of events about a service.
const (
	GPUServiceMissingPods     = "gpu.service.missing_pods"      // names, at most 50
	GPUServiceMissingPodCount = "gpu.service.missing_pod_count" // all of them
	GPUServiceMissingRatio    = "gpu.service.missing_ratio"     // missing / settled
	GPUServiceSettledPodCount = "gpu.service.settled_pod_count"
)
