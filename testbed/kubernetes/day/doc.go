// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package day holds a test that plays a day of a cluster on a real control plane:
// three nodes, an exporter on each that the agent must find, and
// config/agent.yaml in the real binary under the rights of
// config/kubernetes/agent-rbac.yaml. Package ownership judges what the agents
// report. It needs bin/otelcol-gpu (make build).
package day
