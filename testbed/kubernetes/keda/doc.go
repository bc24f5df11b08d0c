// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package keda proves on a real control plane that docs/examples/keda/inference.yaml
// scales deployments of every engine, and holds while too little of a service is known:
// KEDA's operator and metrics server, the autoscaler of the controller manager, and the
// embedded store, with the series of simulated engines. It is tests alone.
package keda
