// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupods

import (
	"context"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8swatch"
)

// listTimeout bounds a list, which is of a whole cluster.
const listTimeout = time.Minute

// The kinds of objects, as telemetry names them.
const (
	podObjects   = "pods"
	claimObjects = "resource_claims"
)

func remedy(object string, result k8sclient.Result) string {
	switch {
	case result == k8sclient.ResultDenied && object == podObjects:
		return "let the service account list and watch pods: in the whole cluster, or in each of namespaces"
	case result == k8sclient.ResultDenied:
		return "let the service account list and watch resourceclaims in resource.k8s.io, or set dra::enabled to false: until then it is unknown which devices pods have through claims, and pods with claims are known by gpu.allocation alone"
	case result == k8sclient.ResultNotServed:
		return "the cluster does not serve resource.k8s.io/v1, as Kubernetes 1.34 and newer do: nothing is missing where no workload uses DRA; dra::enabled: false stops these requests"
	case result == k8sclient.ResultNoAnswer, result == k8sclient.ResultTimeout:
		return "check that the API server is up and can be reached from here; pods are as they were last known"
	default:
		return "look at the API server's log"
	}
}

// run fills a store until ctx ends.
func run[T any](ctx context.Context, f *follower, object string, into *k8swatch.Store[T], from k8swatch.Source) {
	from.ListTimeout = listTimeout
	from.Requests = &k8sclient.Requests{
		Object: object, Logger: f.logger,
		Count: func(ctx context.Context, object string, res k8sclient.Result) {
			f.each(func(m *Member) { m.set.Telemetry.Asked(ctx, object, string(res)) })
		},
		Failure: "pods that request accelerators cannot be read from the Kubernetes API", Remedy: remedy,
	}
	f.work.Go(func() { into.Run(ctx, &from) })
}
