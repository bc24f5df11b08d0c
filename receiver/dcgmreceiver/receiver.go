// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"context"
	"fmt"
	"sync"

	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/mapping"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/metadata"
)

// dcgmReceiver runs a prometheusreceiver whose pages go through a pageConsumer.
type dcgmReceiver struct {
	set      receiver.Settings
	cfg      *Config
	consumer *pageConsumer
	inner    receiver.Metrics // nil until Start
}

func newReceiver(set receiver.Settings, cfg *Config, next consumer.Metrics) (*dcgmReceiver, error) {
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, ReceiverCreateSettings: set,
	})
	if err != nil {
		return nil, err
	}
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &dcgmReceiver{
		set: set,
		cfg: cfg,
		consumer: &pageConsumer{
			next:      next,
			obs:       obs,
			telemetry: telemetry,
			logger:    set.Logger,
			targets:   map[string]*target{},
			options: mapping.Options{
				OTel:         cfg.Names != NamesDCGM,
				DCGM:         cfg.Names != NamesOTel,
				DropUnmapped: cfg.Unmapped == UnmappedDrop,
				NodeName:     cfg.NodeName,
				ClusterName:  cfg.ClusterName,
				ScopeName:    metadata.ScopeName,
				ScopeVersion: set.BuildInfo.Version,
				FrozenAfter:  cfg.FrozenAfter,
				FrozenFor:    2 * cfg.ExporterInterval,
			},
		},
	}, nil
}

func (r *dcgmReceiver) Start(ctx context.Context, host component.Host) error {
	prom, err := r.cfg.promConfig()
	if err != nil {
		return err
	}
	factory := prometheusreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig().(*prometheusreceiver.Config)
	cfg.PrometheusConfig = prom
	cfg.DiscoveryReloadOnStartup = true

	set := r.set
	set.ID = component.NewIDWithName(factory.Type(), r.set.ID.String())
	set.Logger = r.set.Logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return quietCore{core, r.consumer.leftOut, new(sync.Once)}
	}))
	inner, err := factory.CreateMetrics(ctx, set, cfg, r.consumer)
	if err != nil {
		return fmt.Errorf("prometheusreceiver: %w", err)
	}
	r.inner = inner
	return inner.Start(ctx, host)
}

func (r *dcgmReceiver) Shutdown(ctx context.Context) error {
	var err error
	if r.inner != nil {
		err = r.inner.Shutdown(ctx)
		r.inner = nil // it panics when it is shut down twice
	}
	r.consumer.telemetry.Shutdown()
	return err
}
