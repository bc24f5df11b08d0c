// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
)

// object is a kind of object in the Kubernetes API: the values of the attribute object.
type object string

const (
	nodeObject     object = "node"
	resourceSlices object = "resource_slices"
	resourceClaims object = "resource_claims"
	podObject      object = "pods"
	podNames       object = "pod_names"
	deviceObject   object = "koordinator_devices"
)

// Results that only the requests about claims have.
const (
	resultNotFound k8sclient.Result = "not_found"
	resultOther    k8sclient.Result = "other" // a claim that has another allocation than the kubelet reports
)

// rights are what RBAC has to allow for each kind of object.
var rights = map[object]string{
	nodeObject:     "list and watch on nodes",
	resourceSlices: "list and watch on resourceslices in resource.k8s.io",
	resourceClaims: "get on resourceclaims in resource.k8s.io",
	podObject:      "list and watch on pods",
	podNames:       "list and watch on pods",
	deviceObject:   "list and watch on devices in scheduling.koordinator.sh",
}

// without states what is missing without each kind of object.
var without = map[object]string{
	nodeObject:     "the node's object cannot be read: gpu.node.schedulable, gpu.node.mig.reconfiguring and gpu.node.info stop when what is known is too old, and MPS appears as time-slicing",
	resourceSlices: "the node's ResourceSlices cannot be read: devices of DRA are as they were last listed, or have no gpu.allocation where they never were",
	resourceClaims: "ResourceClaims cannot be read: it is not known whether their devices are held or only looked at, they have no gpu.allocation and are not free",
	podObject:      "the node's pods cannot be read: what schedulers that share boards wrote on them is as it was last listed, or their boards have no known owner",
	podNames:       "the node's pods cannot be read: what nvml knows of the containers on a shared device reaches no pod where it never did",
	deviceObject:   "the node's boards cannot be read from Koordinator: its pods are not resolved where they never were",
}

func remedy(kind string, r k8sclient.Result) string {
	switch r {
	case k8sclient.ResultDenied:
		return "let the service account " + rights[object(kind)] + " (ClusterRole and ClusterRoleBinding)"
	case k8sclient.ResultNotServed:
		if object(kind) == deviceObject {
			return "the cluster does not serve scheduling.koordinator.sh/v1alpha1: take koordinator out of sharing, or install Koordinator's CustomResourceDefinitions"
		}
		return "the cluster does not serve resource.k8s.io/v1, as Kubernetes 1.34 and newer do: nothing is missing if DRA is not used; dra::enabled: false stops the requests"
	case resultNotFound, resultOther:
		return "the kubelet lists a claim that was deleted or created again: it is requested again; check the kubelet's log if this persists"
	case k8sclient.ResultNoAnswer, k8sclient.ResultTimeout:
		return "check that the API server is up, and that the pod's network reaches it"
	default:
		return "look at the API server's log"
	}
}

func (t Telemetry) requests(o object) *k8sclient.Requests {
	return &k8sclient.Requests{Object: string(o), Count: t.Count, Logger: t.Logger, Failure: without[o], Remedy: remedy}
}
