// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package slurmallocationreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
)

type allocationReceiver struct {
	cfg  *Config
	next consumer.Metrics
}

func newReceiver(_ receiver.Settings, cfg *Config, next consumer.Metrics) (*allocationReceiver, error) {
	return &allocationReceiver{cfg: cfg, next: next}, nil
}

func (r *allocationReceiver) Start(context.Context, component.Host) error { return nil }

func (r *allocationReceiver) Shutdown(context.Context) error { return nil }
