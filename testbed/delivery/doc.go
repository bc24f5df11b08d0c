// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package delivery proves the webhook exporter's promise on the real binary:
// what was acknowledged is delivered at least once or audited as given up, and
// every attempt has exactly one audit record, whatever the receivers do and
// whenever the process is killed.
//
// Run sends events over OTLP to a collector with webhooks that are receivers that
// misbehave by a seeded schedule, kills the collector with SIGKILL at random
// moments and starts it again on the same storage and audit file. Judge then
// compares three accounts that do not know of each other: what was
// acknowledged, what the receivers saw, and what the audit files report.
package delivery
