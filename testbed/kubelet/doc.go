// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubelet behaves as the kubelet of a node does towards devices: it
// takes the devices that plugins announce, gives them to containers, and reports
// who has what over the pod-resources API on a unix socket, with the habits of
// the real one. It runs no containers and talks to no API server.
package kubelet
