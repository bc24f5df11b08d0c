// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package chart holds the tests that keep charts/otelcol-gpu in step with the
// rest of the repository. testbed/chart installs it.
package chart
