// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package inference proves on a real control plane what agents and the gateway scrape
// and under which names: pods of every engine with loopback addresses at which the
// test serves their pages. It is tests alone.
package inference
