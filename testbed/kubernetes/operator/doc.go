// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package operator holds the chart's PodMonitors, ServiceMonitors and
// PrometheusRules to the types of Prometheus' operator: its CRDs refuse a field
// that these do not have. It is a test alone.
package operator
