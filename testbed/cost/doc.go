// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package cost compares what gpu_cost accounts for with the truth of a simulated fleet: a
// day under a fake clock, in which exporters fail, drivers are reloaded and the gateway is
// killed; and the binaries in real time.
package cost
