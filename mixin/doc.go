// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package mixin is what Grafana and Prometheus are given: dashboards, recording
// rules, alerts and their runbooks. They are written here in Go and generated
// into dashboards/, rules/ and ../docs/runbooks/, so that a name is written once:
// in internal/queries, from which the console asks too.
package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

//go:generate go run ./cmd/mixin
