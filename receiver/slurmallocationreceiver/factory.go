// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package slurmallocationreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver/internal/metadata"
)

// NewFactory returns the factory of the slurm_allocation receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithMetrics(createMetrics, metadata.MetricsStability),
	)
}

func createDefaultConfig() component.Config {
	return &Config{
		Directory:          "/run/otelcol-gpu-jobs",
		Format:             FormatOwn,
		Watch:              true,
		PollInterval:       5 * time.Second,
		CollectionInterval: 15 * time.Second,
		Verify:             VerifyNone,
		StaleAfter:         2 * time.Minute,
		Inside:             InsideNone,
		Identity:           IdentityJob,
		NameWait:           90 * time.Second,
		MaxFiles:           4096,
		MaxFileSize:        64 << 10,
		RootPath:           "/",
	}
}

func createMetrics(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	return newReceiver(set, cfg.(*Config), next)
}
