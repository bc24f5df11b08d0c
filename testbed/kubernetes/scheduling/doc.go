// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package scheduling runs a gateway with config/scheduler.yaml on a real control plane,
// where pods, nodes, cordons, taints, gates, init containers and claims come and go: every
// figure of gpu_scheduling is compared with what a model counts of the same objects, listed
// again. kube-scheduler's own page is scraped, and that of Kueue's manager, really built and
// with its own webhooks: what waits in its queues is in the one view of queues, once.
package scheduling
