// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
)

// allocationReceiver polls the kubelet in one goroutine and emits in another, so
// that neither a kubelet that hangs nor a pipeline that blocks holds the other up.
type allocationReceiver struct {
	cfg     *Config
	next    consumer.Metrics
	obs     *receiverhelper.ObsReport
	tel     *telemetry
	logger  *zap.Logger
	version string
	source  source

	created time.Time
	newest  atomic.Pointer[snapshot] // nil until the kubelet answered
	changed chan struct{}            // has room for one: somebody else holds what

	cancel context.CancelFunc // nil until Start
	work   sync.WaitGroup
}

func newReceiver(set receiver.Settings, cfg *Config, next consumer.Metrics) (*allocationReceiver, error) {
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, Transport: "unix", ReceiverCreateSettings: set,
	})
	if err != nil {
		return nil, err
	}
	r := &allocationReceiver{
		cfg:     cfg,
		next:    next,
		obs:     obs,
		logger:  set.Logger,
		version: set.BuildInfo.Version,
		source:  &kubelet{socket: cfg.Socket, timeout: cfg.Timeout, maxMessageSize: cfg.MaxMessageSize},
		created: time.Now(),
		changed: make(chan struct{}, 1),
	}
	r.tel, err = newTelemetry(set.TelemetrySettings, r.age, r.states)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Start begins to ask. A kubelet that is not there is no error: it may come.
func (r *allocationReceiver) Start(context.Context, component.Host) error {
	resources, err := resourcenames.New(r.cfg.ResourceNames)
	if err != nil {
		return err
	}
	p := &poller{r: r, builder: builder{cfg: r.cfg, read: reader{resources}}, causes: causes{}}
	// The context given to Start ends with it.
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.work.Go(func() { p.run(ctx) })
	r.work.Go(func() { r.emitUntil(ctx) })
	return nil
}

// Shutdown waits for the call and the emission that are under way, both of which
// it cancels. It ends no series: a restart is no gap.
func (r *allocationReceiver) Shutdown(context.Context) error {
	if r.cancel != nil {
		r.cancel()
		r.work.Wait()
	}
	r.tel.builder.Shutdown()
	return nil
}

// age of the newest snapshot, by the monotonic clock: a wall clock that is set
// neither ages nor rejuvenates it.
func (r *allocationReceiver) age() time.Duration {
	if s := r.newest.Load(); s != nil {
		return time.Since(s.at)
	}
	return time.Since(r.created)
}

func (r *allocationReceiver) states() (states, bool) {
	if s := r.newest.Load(); s != nil && r.fresh(s, time.Now()) {
		return s.states, true
	}
	return states{}, false
}

// fresh reports whether a snapshot is young enough to be emitted.
func (r *allocationReceiver) fresh(s *snapshot, now time.Time) bool {
	return now.Sub(s.at) <= 3*r.cfg.PollInterval
}

func (r *allocationReceiver) emitUntil(ctx context.Context) {
	ticker := time.NewTicker(r.cfg.CollectionInterval)
	defer ticker.Stop()
	told := causes{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-r.changed:
		}
		r.emit(ctx, told)
	}
}

// emit hands the newest snapshot on, unless it is too old.
func (r *allocationReceiver) emit(ctx context.Context, told causes) {
	now := time.Now()
	s := r.newest.Load()
	if s == nil {
		return // the poller says why
	}
	if !r.fresh(s, now) {
		if told.due("stale", now) {
			r.logger.Warn("The kubelet's last answer is older than three poll intervals: gpu.allocation is not emitted until it answers",
				zap.Duration("age", now.Sub(s.at)))
		}
		return
	}
	if len(s.allocations) == 0 {
		return
	}
	ctx = r.obs.StartMetricsOp(ctx)
	err := r.next.ConsumeMetrics(ctx, s.metrics(r.cfg, r.version))
	r.obs.EndMetricsOp(ctx, "pod_resources", len(s.allocations), err)
	if err != nil && told.due("refused", now) {
		r.logger.Warn("The next component refused gpu.allocation; it is sent again with the next interval", zap.Error(err))
	}
}
