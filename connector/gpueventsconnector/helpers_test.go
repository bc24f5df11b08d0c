// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/metadatatest"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// bench is a started connector with what it forwards and reports about itself.
type bench struct {
	t    *testing.T
	c    *output
	sink *consumertest.LogsSink
	tel  *componenttest.Telemetry
	logs *observer.ObservedLogs
}

func start(t *testing.T, change ...func(*Config)) *bench {
	t.Helper()
	b := startOn(t, componenttest.NewNopHost(), change...)
	t.Cleanup(b.stop)
	return b
}

// startOn starts on a host; stop ends it.
func startOn(t *testing.T, host component.Host, change ...func(*Config)) *bench {
	t.Helper()
	return startInto(t, host, nil, change...)
}

// startInto is startOn with a pipeline that takes the health of boards, where into is not
// nil.
func startInto(t *testing.T, host component.Host, into consumer.Metrics, change ...func(*Config)) *bench {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.Events[names.EventHealth][rule.Enabled] = false // nearly every story would have it too: withHealth
	for _, c := range change {
		c(cfg)
	}
	b := &bench{t: t, sink: new(consumertest.LogsSink), tel: componenttest.NewTelemetry()}
	core, logs := observer.New(zap.InfoLevel)
	settings := metadatatest.NewSettings(b.tel)
	settings.Logger, b.logs = zap.New(core), logs
	if into != nil {
		_, err := NewFactory().CreateMetricsToMetrics(t.Context(), settings, cfg, into)
		require.NoError(t, err)
	}
	c, err := NewFactory().CreateMetricsToLogs(t.Context(), settings, cfg, b.sink)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), host))
	b.c = c.(*output)
	return b
}

// withHealth switches gpu.health on.
func withHealth(cfg *Config) { cfg.Events[names.EventHealth][rule.Enabled] = true }

func (b *bench) stop() {
	ctx := context.WithoutCancel(b.t.Context())
	require.NoError(b.t, b.c.Shutdown(ctx))
	require.NoError(b.t, b.tel.Shutdown(ctx))
}

// feed passes one batch in and returns the events, which left in one call.
func (b *bench) feed(md pmetric.Metrics) []occurred {
	b.t.Helper()
	b.sink.Reset()
	require.NoError(b.t, b.c.ConsumeMetrics(b.t.Context(), md))
	return b.events()
}

// wait lets time go by and returns the events of that time.
func (b *bench) wait(d time.Duration) []occurred {
	b.t.Helper()
	b.sink.Reset()
	time.Sleep(d)
	synctest.Wait()
	var all []occurred
	for _, logs := range b.sink.AllLogs() {
		all = append(all, read(logs)...)
	}
	return all
}

// events are those that were forwarded at once.
func (b *bench) events() []occurred {
	b.t.Helper()
	synctest.Wait()
	if len(b.sink.AllLogs()) == 0 {
		return nil
	}
	require.Len(b.t, b.sink.AllLogs(), 1, "all events of a batch leave in one call")
	return read(b.sink.AllLogs()[0])
}

// occurred is one event as its receiver sees it.
type occurred struct {
	resource map[string]any
	record   plog.LogRecord
	attrs    map[string]any
	state    string
	body     string
}

func read(logs plog.Logs) (all []occurred) {
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, r := range sl.LogRecords().All() {
				attrs := r.Attributes().AsRaw()
				all = append(all, occurred{
					resource: rl.Resource().Attributes().AsRaw(),
					record:   r,
					attrs:    attrs,
					state:    attrs[names.GPUEventState].(string),
					body:     r.Body().Str(),
				})
			}
		}
	}
	return all
}

func states(events []occurred) (s []string) {
	for _, e := range events {
		s = append(s, e.state)
	}
	return s
}

// evaluated is one evaluation of one service, as gpu_summary emits it.
type evaluated struct {
	service         subject.Service
	at              int // seconds
	partial         float64
	stale           bool // the service was forgotten
	missing         []string
	reporting       int64
	ratio           float64
	withoutPods     bool // partial alone
	resourceOnly    bool // identity is on the resource, not on points
	partialIsDouble bool
	idle            int64 // devices; -1: not reported
	nothingFresh    bool  // no pod is degraded
}

func (e evaluated) add(md pmetric.Metrics) {
	rm := md.ResourceMetrics().AppendEmpty()
	if e.resourceOnly {
		e.service.Put(rm.Resource().Attributes())
	}
	sm := rm.ScopeMetrics().AppendEmpty()
	point := func(m *names.Metric) pmetric.NumberDataPoint {
		p := m.Init(sm.Metrics().AppendEmpty()).AppendEmpty()
		p.SetTimestamp(pcommon.Timestamp(e.at) * 1e9)
		if !e.resourceOnly {
			e.service.Put(p.Attributes())
		}
		return p
	}
	p := point(&names.ServicePartial)
	switch {
	case e.stale:
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	case e.partialIsDouble:
		p.SetDoubleValue(e.partial)
	default:
		p.SetIntValue(int64(e.partial))
	}
	if e.withoutPods || e.stale {
		return
	}
	if e.idle >= 0 {
		point(&names.ServiceIdleDevices).SetIntValue(e.idle)
	}
	degraded := int64(1)
	if e.nothingFresh {
		degraded = 0
	}
	point(&names.ServiceMissingRatio).SetDoubleValue(e.ratio)
	for state, n := range map[string]int64{
		"reporting": e.reporting, "degraded": degraded, "missing": int64(len(e.missing)), "warming": 7, "not_running": 9,
	} {
		p := point(&names.ServicePods)
		p.SetIntValue(n)
		p.Attributes().PutStr(names.GPUPodState, state)
	}
	for _, pod := range e.missing {
		for state, is := range map[string]int64{"missing": 1, "reporting": 0} {
			p := point(&names.PodState)
			p.SetIntValue(is)
			p.Attributes().PutStr(names.GPUPodState, state)
			p.Attributes().PutStr(names.K8sPodName, pod)
		}
	}
	p = point(&names.PodState) // a pod that left the state
	p.SetIntValue(0)
	p.Attributes().PutStr(names.GPUPodState, "missing")
	p.Attributes().PutStr(names.K8sPodName, "back-again")
}

func batch(evaluations ...evaluated) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for _, e := range evaluations {
		e.add(md)
	}
	return md
}

var _ consumer.Logs = (*refusing)(nil)

// refusing refuses what it gets while an error is set.
type refusing struct {
	consumertest.LogsSink
	mu  sync.Mutex
	err error
}

func (r *refusing) refuse(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *refusing) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	r.mu.Lock()
	err := r.err
	r.mu.Unlock()
	if err != nil {
		return err
	}
	return r.LogsSink.ConsumeLogs(ctx, logs)
}

func (h *hanging) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	select {
	case <-h.release:
	case <-func() <-chan struct{} {
		if h.obeys {
			return ctx.Done()
		}
		return nil
	}():
		return ctx.Err()
	}
	return h.refusing.ConsumeLogs(ctx, logs)
}

// at is a time in seconds.
func at(seconds float64) pcommon.Timestamp { return pcommon.Timestamp(1e18 + seconds*1e9) }

func serviceID(cluster, namespace, name string) subject.Service {
	return subject.Service{Cluster: cluster, Namespace: namespace, Name: name}
}
