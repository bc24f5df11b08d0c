// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package chart proves charts/otelcol-gpu: both majors of Helm render it for a
// matrix of values, the real API server takes every object, the real binary takes
// every configuration, and it lives through a day on a real control plane with
// processes in place of containers. It is tests alone.
package chart
