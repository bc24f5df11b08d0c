// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package keda proves on a real control plane that docs/examples/keda/inference.yaml
// scales deployments of every engine, and holds while too little of a service is known:
// KEDA's operator and metrics server, the autoscaler of the controller manager, and the
// embedded store. Pages of simulated vLLM, SGLang and TGI reach it by agent and
// gateway; series of states that a simulation does not stay in are computed. It is tests
// alone.
package keda
