// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package health compares the health of boards and nodes that gpu_events reports with
// what a simulated fleet is expected to have: for every reason, and for what may happen
// in between. The dcgm receiver scrapes the simulated exporter, and its metrics go through
// gpu_pod to gpu_events: from their factories, and under a fake clock.
package health

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/disk"
)

var eventsID = component.MustNewID("gpu_events")

// agent is a receiver, with the processor and the connector behind it, in one process.
type agent struct {
	alive           *atomic.Bool // a stopped agent sends and writes nothing
	receiver, pods  component.Component
	metrics, events connector.Metrics
}

// start starts an agent with the dcgm receiver on what is on the disk.
func start(t *testing.T, d *disk.Disk, into *reported, receiver, events map[string]any) *agent {
	t.Helper()
	return startOf(t, dcgmreceiver.NewFactory(), d, into, receiver, events)
}

// startOf starts an agent with a receiver.
func startOf(t *testing.T, of receiver.Factory, d *disk.Disk, into *reported, config, events map[string]any) *agent {
	t.Helper()
	a := &agent{alive: new(atomic.Bool)}
	a.alive.Store(true)
	host := d.Host(a.alive)

	factory := gpueventsconnector.NewFactory()
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(events).Unmarshal(cfg))
	set := connectortest.NewNopSettings(eventsID.Type())
	set.ID = eventsID
	metrics, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		if a.alive.Load() {
			into.takeMetrics(md)
		}
		return nil
	})
	require.NoError(t, err)
	logs, err := consumer.NewLogs(func(_ context.Context, ld plog.Logs) error {
		if a.alive.Load() {
			into.takeEvents(ld)
		}
		return nil
	})
	require.NoError(t, err)
	a.metrics, err = factory.CreateMetricsToMetrics(t.Context(), set, cfg, metrics)
	require.NoError(t, err)
	a.events, err = factory.CreateMetricsToLogs(t.Context(), set, cfg, logs)
	require.NoError(t, err)

	scrape := of.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(config).Unmarshal(scrape))
	both, err := consumer.NewMetrics(a.take)
	require.NoError(t, err)
	owners := gpupodprocessor.NewFactory()
	pods, err := owners.CreateMetrics(t.Context(), processortest.NewNopSettings(owners.Type()), owners.CreateDefaultConfig(), both)
	require.NoError(t, err)
	a.pods = pods
	a.receiver, err = of.CreateMetrics(t.Context(), receivertest.NewNopSettings(of.Type()), scrape, pods)
	require.NoError(t, err)
	for _, c := range []component.Component{a.events, a.metrics, a.pods} {
		require.NoError(t, c.Start(t.Context(), host))
	}
	require.NoError(t, a.receiver.Start(t.Context(), componenttest.NewNopHost()))
	return a
}

// take gives metrics to both outputs, as a pipeline does.
func (a *agent) take(ctx context.Context, md pmetric.Metrics) error {
	return errors.Join(a.metrics.ConsumeMetrics(ctx, md), a.events.ConsumeMetrics(ctx, md))
}

// stop ends the agent; killed: as a SIGKILL does, after which nothing leaves it.
func (a *agent) stop(t *testing.T, killed bool) {
	t.Helper()
	if killed {
		a.alive.Store(false)
	}
	ctx := context.WithoutCancel(t.Context())
	for _, c := range []component.Component{a.receiver, a.pods, a.events, a.metrics} {
		require.NoError(t, c.Shutdown(ctx))
	}
}

// every is a duration as a configuration has it.
func every(d time.Duration) string { return d.String() }
