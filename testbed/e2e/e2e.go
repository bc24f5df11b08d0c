// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the binaries as a user runs them: real processes, real
// HTTP, the configurations of config/. `make build` comes first.
package e2e
