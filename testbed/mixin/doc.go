// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package mixin tests the dashboards, rules and alerts of ../../mixin as Grafana
// and Prometheus read them: every expression is evaluated by Prometheus' own
// engine over what the binary reported of a simulated fleet. `make build` comes first.
package mixin
