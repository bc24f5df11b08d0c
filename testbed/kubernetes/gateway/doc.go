// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package gateway proves on a real control plane what config/gateway.yaml does
// with what agents send: two nodes with config/agent.yaml, one of them with
// config/agent-raw.yaml over it, and one gateway, which is killed and started
// again. It is tests alone.
package gateway
