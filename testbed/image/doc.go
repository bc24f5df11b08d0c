// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package image checks what is deployed without Kubernetes, with the code that
// reads it in earnest: the Dockerfile with BuildKit's linter, the compose file with
// Compose's loader, the systemd units with systemd where it is, and the
// distribution of docs/examples/custom-distribution by building it.
package image
