// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package besteffortconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-gpu/otelcol-gpu/connector/besteffortconnector/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/seriesends"
)

// NewFactory returns the factory of the best_effort connector.
func NewFactory() connector.Factory {
	return connector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		connector.WithMetricsToMetrics(createMetrics, metadata.MetricsToMetricsStability),
		connector.WithLogsToLogs(createLogs, metadata.LogsToLogsStability),
		connector.WithTracesToTraces(createTraces, metadata.TracesToTracesStability),
	)
}

// metrics, logs and traces are the connector for one signal each.
type (
	metrics struct{ *forwarder[pmetric.Metrics] }
	logs    struct{ *forwarder[plog.Logs] }
	traces  struct{ *forwarder[ptrace.Traces] }
)

func createMetrics(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Metrics, error) {
	f, err := newForwarder(set, cfg.(*Config), signal[pmetric.Metrics]{count: pmetric.Metrics.DataPointCount, copy: func(from pmetric.Metrics) pmetric.Metrics {
		to := pmetric.NewMetrics()
		from.CopyTo(to)
		return to
	}})
	if err != nil {
		return nil, err
	}
	return metrics{f}, behind(f, next.(connector.MetricsRouterAndConsumer), wayOfMetrics)
}

func createLogs(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Logs, error) {
	f, err := newForwarder(set, cfg.(*Config), signal[plog.Logs]{count: plog.Logs.LogRecordCount, copy: func(from plog.Logs) plog.Logs {
		to := plog.NewLogs()
		from.CopyTo(to)
		return to
	}})
	if err != nil {
		return nil, err
	}
	return logs{f}, behind(f, next.(connector.LogsRouterAndConsumer), func(next consumer.Logs) way[plog.Logs] { return way[plog.Logs]{consume: next.ConsumeLogs} })
}

func createTraces(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Traces) (connector.Traces, error) {
	f, err := newForwarder(set, cfg.(*Config), signal[ptrace.Traces]{count: ptrace.Traces.SpanCount, copy: func(from ptrace.Traces) ptrace.Traces {
		to := ptrace.NewTraces()
		from.CopyTo(to)
		return to
	}})
	if err != nil {
		return nil, err
	}
	return traces{f}, behind(f, next.(connector.TracesRouterAndConsumer), func(next consumer.Traces) way[ptrace.Traces] { return way[ptrace.Traces]{consume: next.ConsumeTraces} })
}

// maxEnds bounds the ends of series that wait for a pipeline to take them.
const maxEnds = 20_000

// wayOfMetrics keeps the ends of series that a pipeline did not take, and puts them
// in front of the next batch: the component before the connector has forgotten them.
func wayOfMetrics(next consumer.Metrics) way[pmetric.Metrics] {
	sender := seriesends.New(next, maxEnds, nil)
	return way[pmetric.Metrics]{sender.ConsumeMetrics, sender.Keep}
}

func (m metrics) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	m.forward(ctx, md)
	return nil
}

func (l logs) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	l.forward(ctx, ld)
	return nil
}

func (t traces) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	t.forward(ctx, td)
	return nil
}
