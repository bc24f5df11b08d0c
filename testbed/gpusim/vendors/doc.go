// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package vendors simulates nodes whose boards are not NVIDIA's: the pages of AMD's
// Device Metrics Exporter, of Intel's Gaudi exporter and of XPU Manager 1.x and 2.x, the
// ids of the vendors' device plugins, the part of sysfs that joins them, and what is true
// behind all of it. It imports no product code.
package vendors
