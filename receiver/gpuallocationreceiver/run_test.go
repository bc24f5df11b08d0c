// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/kubelet"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/metadata"
	"math/rand/v2"
)

// run is a receiver with all of its telemetry. It is its own next component.
type run struct {
	t         *testing.T
	receiver  *allocationReceiver
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs

	mu      sync.Mutex
	batches []batch
	refuse  error
	block   chan struct{} // the next component waits for it, if not nil
}

type batch struct {
	after time.Duration // since the start
	md    pmetric.Metrics
}

func newRun(t *testing.T, change ...func(*Config)) *run {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.NodeName = "node-a"
	cfg.AuthType = k8sclient.None
	for _, f := range change {
		f(cfg)
	}
	r := &run{t: t, telemetry: componenttest.NewTelemetry()}
	set := receivertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = r.telemetry.NewTelemetrySettings()
	set.BuildInfo.Version = "1.2.3"
	var core zapcore.Core
	core, r.logs = observer.New(zap.DebugLevel)
	set.Logger = zap.New(core)
	start := time.Now()
	next, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.batches = append(r.batches, batch{time.Since(start), md})
		if block := r.block; block != nil {
			r.mu.Unlock()
			select {
			case <-block:
			case <-ctx.Done():
			}
			r.mu.Lock()
		}
		return r.refuse
	})
	require.NoError(t, err)
	r.receiver, err = newReceiver(set, cfg, next)
	require.NoError(t, err)
	return r
}

func (r *run) start() {
	r.t.Helper()
	require.NoError(r.t, r.receiver.Start(r.t.Context(), componenttest.NewNopHost()))
}

func (r *run) stop() {
	r.t.Helper()
	require.NoError(r.t, r.receiver.Shutdown(context.Background()))
	require.NoError(r.t, r.telemetry.Shutdown(context.Background()))
}

// taken are the batches that arrived since the last call.
func (r *run) taken() []batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.batches
	r.batches = nil
	return taken
}

// times are the seconds after the start at which batches arrived.
func times(batches []batch) []float64 {
	out := []float64{}
	for _, b := range batches {
		out = append(out, b.after.Seconds())
	}
	return out
}

// logged counts log lines with a message.
func (r *run) logged(message string) int { return r.logs.FilterMessage(message).Len() }

func (r *run) devices() map[string]int64 {
	m, err := r.telemetry.GetMetric("otelcol_gpu_allocation_devices")
	if err != nil {
		return nil
	}
	out := map[string]int64{}
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		state, _ := p.Attributes.Value("state")
		out[state.AsString()] = p.Value
	}
	return out
}

func (r *run) age() float64 {
	m, err := r.telemetry.GetMetric("otelcol_gpu_allocation_snapshot_age")
	require.NoError(r.t, err)
	return m.Data.(metricdata.Gauge[float64]).DataPoints[0].Value
}

// calls counts calls of List by outcome.
func (r *run) calls(o kubelet.Outcome) int64 {
	m, err := r.telemetry.GetMetric("otelcol_gpu_allocation_calls")
	if err != nil {
		return 0
	}
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		call, _ := p.Attributes.Value("call")
		got, _ := p.Attributes.Value("outcome")
		if call.AsString() == "list" && got.AsString() == string(o) {
			return p.Value
		}
	}
	return 0
}

// script is a kubelet for a bubble of synctest, which has no sockets.
type script struct {
	mu    sync.Mutex
	node  node
	err   error
	hangs bool
	asked uint64

	served time.Time // when its socket was made; zero: not known

	allocatableErr error // of that call alone
}

func (s *script) set(f func(*script)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *script) Close() {}

// polls is how often it was asked.
func (s *script) polls() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *script) Ask(ctx context.Context) kubelet.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.hangs {
		s.mu.Unlock()
		ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
		<-ctx.Done()
		cancel()
		s.mu.Lock()
		return kubelet.Answer{ListErr: context.DeadlineExceeded, AllocatableErr: context.DeadlineExceeded}
	}
	if s.err != nil {
		return kubelet.Answer{ListErr: s.err, AllocatableErr: s.err}
	}
	order := rand.New(rand.NewPCG(s.asked, s.asked))
	a := kubelet.Answer{List: s.node.List(order), Allocatable: s.node.Allocatable(order)}
	a.At, a.Served = time.Now(), s.served
	if s.allocatableErr != nil {
		a.Allocatable, a.AllocatableErr = nil, s.allocatableErr
	}
	return a
}

// story runs a receiver on a scripted kubelet in a bubble where time is fake.
func story(t *testing.T, s *script, act func(t *testing.T, r *run), change ...func(*Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t, change...)
		r.receiver.source = s
		r.start()
		defer r.stop()
		synctest.Wait()
		act(t, r)
	})
}

// until lets the bubble's time go on to a moment just after so many seconds.
func until(r *run, seconds float64) {
	r.t.Helper()
	d := time.Duration(seconds*float64(time.Second)) + time.Millisecond
	time.Sleep(time.Until(r.receiver.created.Add(d)))
	synctest.Wait()
}

func oneOfTwo() *script {
	return &script{node: node{Devices: map[string][]string{gpuName: {gpuA, gpuB}}, Pods: []pod{holds("ml", "a", gpuName, gpuA)}}}
}
