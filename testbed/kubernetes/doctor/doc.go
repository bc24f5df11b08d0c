// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor tests what gpuctl doctor reports of a cluster, on a real API
// server: accounts with and without rights, nodes, exporters' pods.
package doctor
