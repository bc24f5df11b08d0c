// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package node simulates what runs on a GPU node beside its pods: a kubelet
// that gives devices to containers and reports them over pod-resources, the
// device plugin or the DRA driver, and a dcgm-exporter. Node and pods live in a
// real cluster: its scheduler and controllers decide what runs where.
//
// The kubelet follows the pods that are bound to the node: a new one gets its
// devices, one that has ended or is gone gives them back. Truth reports who has
// what, without any of the APIs that a collector reads.
package node
