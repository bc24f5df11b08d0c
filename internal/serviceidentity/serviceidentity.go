// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package serviceidentity decides which service a pod belongs to: the one place
// where a service.name is computed by otelcol-gpu itself.
//
// In a cluster k8s_attributes and a transform after it (config/agent.yaml) compute
// service.name; FromPod is the same in Go, for pods that were never seen, and a
// test on a real API server compares the two. FromLabels is for where there is no
// Kubernetes API to ask.
package serviceidentity

// Labels are the keys of the pod labels that name a service, the most specific
// first.
var Labels = [...]string{
	"app.kubernetes.io/instance",
	"app.kubernetes.io/name",
	"app",
}

// FromLabels is the service.name of the pod named pod: the value of the first of
// Labels that the pod has, else the pod's own name. A hash at the end of a pod's
// name is never cut off: whether it is one cannot be known from the name.
//
// label returns the value of the pod's label at Labels[i], "" where the pod has
// none: an empty label is an absent one.
func FromLabels(pod string, label func(i int) string) string {
	for i := range Labels {
		if v := label(i); v != "" {
			return v
		}
	}
	return pod
}
