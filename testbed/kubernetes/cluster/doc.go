// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a real Kubernetes control plane for tests on loopback:
// etcd, kube-apiserver with RBAC, kube-controller-manager, kube-scheduler and
// KWOK, which keeps nodes alive and plays pods. The programs are built by
// `make kubernetes`.
//
//	c, err := cluster.Start(ctx, cluster.Options{})
//	if err != nil { ... }
//	defer c.Stop()
//	client := c.Client()
//
// A pod annotated with AnnotationCompleteAfter succeeds after that time, one
// annotated with AnnotationStopAfter takes that long to go when deleted. All
// others run until they are deleted, and then go at once.
package cluster
