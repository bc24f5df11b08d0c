// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuschedulingreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
)

// schedulingReceiver evaluates on a timer what it knows of nodes and pods.
type schedulingReceiver struct {
	cfg  *Config
	next consumer.Metrics
}

func newReceiver(_ receiver.Settings, cfg *Config, next consumer.Metrics) (*schedulingReceiver, error) {
	return &schedulingReceiver{cfg: cfg, next: next}, nil
}

// Start begins to follow the Kubernetes API.
func (r *schedulingReceiver) Start(context.Context, component.Host) error { return nil }

// Shutdown ends what Start began.
func (r *schedulingReceiver) Shutdown(context.Context) error { return nil }
