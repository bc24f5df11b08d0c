// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package day judges who agents say holds a GPU. A Recorder keeps every point
// that they send, a Ledger and a Chronicle what is true and when; Judge compares
// holders, CompareSums sums over physical devices, Follow the ends of series.
// What is late counts from the points' own times, so that a busy machine that
// delivers late is not blamed.
//
// Its tests play a day of a cluster on a real control plane: three nodes, an
// exporter on each that the agent must find, and config/agent.yaml in the real
// binary under the rights of config/kubernetes/agent-rbac.yaml. They need
// bin/otelcol-gpu (make build). -short plays a part of the day.
package day
