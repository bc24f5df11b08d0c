// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package store tests gpu_store against a Prometheus server of the train's own
// version, which it builds and starts: the contract of its engines, equal names
// from both ways of writing, and promtool.
package store
