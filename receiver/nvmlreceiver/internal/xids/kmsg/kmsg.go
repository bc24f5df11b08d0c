// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package kmsg follows the kernel log.
package kmsg
