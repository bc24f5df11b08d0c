// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package queries // import "github.com/otelcol-gpu/otelcol-gpu/internal/queries"

import (
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Metrics of what the scheduler has to give, and what waits for it.
var (
	NodeDevices    = names.NodeDevices.Prometheus()
	Stranded       = names.SchedulingStranded.Prometheus()
	Fit            = names.SchedulingFit.Prometheus()
	Fragmentation  = names.SchedulingFragmentation.Prometheus()
	PendingPods    = names.SchedulingPendingPods.Prometheus()
	PendingDevices = names.SchedulingPending.Prometheus()
	PendingAge     = names.SchedulingPendingAge.Prometheus()
)

// Labels.
const (
	Resource        = "k8s_resource_name"
	NodeDeviceState = "gpu_node_device_state"
	StrandedReason  = "gpu_stranded_reason"
	RequestSize     = "gpu_request_size"
	Queue           = "gpu_queue_name"
	PendingReason   = "gpu_pending_reason"
)

// ofPool are the devices of a cluster that a request for one resource may get.
var ofPool = []string{Cluster, Resource, Model}

// CapacitySeen asks when the capacity of clusters was last evaluated within a time.
func CapacitySeen(s Selector, within time.Duration) string {
	var all []string
	for _, metric := range []string{Fit, Stranded, PendingPods} { // few, and no two have the same labels
		now := "timestamp(" + of(metric, s) + ")"
		all = append(all, now, "max_over_time("+now+subquery(within)+")")
	}
	return "max" + by(Cluster) + "(" + strings.Join(all, " or ") + ")"
}

// CapacityOfNodes asks for the devices of nodes by state, as of no longer ago than a time.
func CapacityOfNodes(s Selector, maxAge time.Duration) string {
	return "max" + by(append(ofPool[:len(ofPool):len(ofPool)], Node, NodeDeviceState)...) + "(" + within(of(NodeDevices, s), maxAge) + ")"
}

// CapacityStranded, CapacityFit and CapacityFragmentation ask for what each pool has.
func CapacityStranded(s Selector, maxAge time.Duration) string {
	return "max" + by(append(ofPool[:len(ofPool):len(ofPool)], StrandedReason)...) + "(" + within(of(Stranded, s), maxAge) + ")"
}
func CapacityFit(s Selector, maxAge time.Duration) string {
	return "max" + by(append(ofPool[:len(ofPool):len(ofPool)], RequestSize)...) + "(" + within(of(Fit, s), maxAge) + ")"
}
func CapacityFragmentation(s Selector, maxAge time.Duration) string {
	return "max" + by(append(ofPool[:len(ofPool):len(ofPool)], RequestSize)...) + "(" + within(of(Fragmentation, s), maxAge) + ")"
}

// Waiting asks for the pods that wait, or for the devices that they ask for; WaitingFor for
// how long the oldest of them has waited.
func Waiting(metric string, s Selector, maxAge time.Duration) string {
	return "max" + by(Cluster, Namespace, Queue, PendingReason, Resource) + "(" + within(of(metric, s), maxAge) + ")"
}
func WaitingFor(s Selector, maxAge time.Duration) string {
	return "max" + by(Cluster, Namespace, Queue, PendingReason) + "(" + within(of(PendingAge, s), maxAge) + ")"
}
