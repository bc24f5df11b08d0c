// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupods

import "github.com/otelcol-gpu/otelcol-gpu/internal/safetext"

// maxQueue bounds the name of a queue, in bytes: as long as a Kubernetes name can be.
const maxQueue = 253

// queueOf is the queue that a pod waits in, which the first that is there names: Kueue's
// ClusterQueue and LocalQueue, Volcano's queue, that of KAI, Koordinator's quota, and then
// the labels in more.
func queueOf(labels, annotations map[string]string, more []string) string {
	for _, name := range []string{
		labels["kueue.x-k8s.io/cluster-queue-name"], labels["kueue.x-k8s.io/queue-name"],
		annotations["scheduling.volcano.sh/queue-name"],
		labels["kai.scheduler/queue"], labels["quota.scheduling.koordinator.sh/name"],
	} {
		if name != "" {
			return safetext.Strip(name, maxQueue) // an annotation can be any text
		}
	}
	for _, key := range more {
		if name := labels[key]; name != "" {
			return name
		}
	}
	return ""
}
