// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
)

// object is a kind of object in the Kubernetes API: the values of the attribute object.
type object string

const (
	nodeObject     object = "node"
	resourceSlices object = "resource_slices"
	resourceClaims object = "resource_claims"
)

// Results that only the requests about claims have.
const (
	resultNotFound k8sclient.Result = "not_found"
	resultOther    k8sclient.Result = "other" // a claim that has another allocation than the kubelet says
)

// rights are what RBAC has to allow for each kind of object.
var rights = map[object]string{
	nodeObject:     "list and watch on nodes",
	resourceSlices: "list and watch on resourceslices in resource.k8s.io",
	resourceClaims: "get on resourceclaims in resource.k8s.io",
}

// without says what is missing without each kind of object.
var without = map[object]string{
	nodeObject:     "The node's object cannot be read: gpu.node.schedulable and gpu.node.mig.reconfiguring stop when what is known is too old, and MPS is told as time-slicing",
	resourceSlices: "The node's ResourceSlices cannot be read: devices of DRA are as they were last listed, or have no gpu.allocation where they never were",
	resourceClaims: "ResourceClaims cannot be read: it is not known whether their devices are held or only looked at, they have no gpu.allocation and are not free",
}

func remedy(o object, r k8sclient.Result) string {
	switch r {
	case k8sclient.ResultDenied:
		return "let the service account " + rights[o] + " (ClusterRole and ClusterRoleBinding)"
	case k8sclient.ResultNotServed:
		return "the cluster does not serve resource.k8s.io/v1, as Kubernetes 1.34 and newer do: nothing is missing where nobody uses DRA; dra::enabled: false ends the question"
	case resultNotFound, resultOther:
		return "the kubelet lists a claim that is gone or was made anew: it is asked again; look at the kubelet's log if that stays"
	case k8sclient.ResultNoAnswer, k8sclient.ResultTimeout:
		return "check that the API server is up, and that the pod's network reaches it"
	default:
		return "look at the API server's log"
	}
}

// requests counts the requests about one kind of object, and tells the log each
// cause of failure once. One goroutine uses it.
type requests struct {
	object object
	tel    *telemetry
	told   causes
	last   k8sclient.Result
}

func newRequests(o object, tel *telemetry) *requests {
	return &requests{object: o, tel: tel, told: causes{}, last: k8sclient.ResultOK}
}

// ended takes note of how a request ended.
func (r *requests) ended(ctx context.Context, res k8sclient.Result, err error) {
	if err != nil && ctx.Err() == context.Canceled {
		return // shut down: how the request ended says nothing about the API
	}
	r.tel.asked(ctx, r.object, res)
	last := r.last
	r.last = res
	switch {
	case res == k8sclient.ResultOK:
		if last != k8sclient.ResultOK && r.told.due("again", time.Now()) {
			r.tel.logger.Info("The Kubernetes API answers again", zap.String("object", string(r.object)))
		}
	case res == k8sclient.ResultNotServed && last == res:
		// A cluster without DRA stays one.
	case r.told.due(string(res), time.Now()):
		r.tel.logger.Warn(without[r.object], zap.String("result", string(res)),
			zap.String("remedy", remedy(r.object, res)), zap.String("cause", cause(err)))
	}
}
