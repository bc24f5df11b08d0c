// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package gpuschedulingreceiver reports what of a Kubernetes cluster's accelerators the
// scheduler has to give and what waits for them: free, stranded and fragmented devices,
// pending pods by reason and queue, and how long pods took to be scheduled and to run. All of
// it is computed from nodes and pods in the Kubernetes API, so no scheduler has to be scraped.
package gpuschedulingreceiver

//go:generate mdatagen metadata.yaml
