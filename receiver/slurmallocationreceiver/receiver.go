// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package slurmallocationreceiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver/internal/jobmap"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver/internal/snapshot"
)

// allocationReceiver reads the folder in one goroutine and emits in another, so that a pipeline
// that blocks does not hold the reading up.
type allocationReceiver struct {
	cfg    *Config
	next   consumer.Metrics
	obs    *receiverhelper.ObsReport
	tel    *telemetry
	logger *zap.Logger
	origin snapshot.Origin
	sysfs  *gpusysfs.Reader

	created time.Time
	newest  atomic.Pointer[snapshot.Snapshot] // nil until the folder was read
	changed chan struct{}                     // has room for one: owners are others
	sent    *snapshot.Snapshot                // that was accepted last; only emit touches it

	cancel context.CancelFunc // nil until Start
	work   sync.WaitGroup
}

func newReceiver(set receiver.Settings, cfg *Config, next consumer.Metrics) (*allocationReceiver, error) {
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, Transport: "file", ReceiverCreateSettings: set,
	})
	if err != nil {
		return nil, err
	}
	r := &allocationReceiver{
		cfg: cfg, next: next, obs: obs, logger: set.Logger,
		origin: snapshot.Origin{
			K8sCluster: cfg.K8sClusterName, Node: cmp.Or(cfg.NodeName, machineName()), Version: set.BuildInfo.Version,
			Interval: max(cfg.CollectionInterval, cfg.PollInterval), Nested: cfg.Inside == InsideKubernetes,
		},
		sysfs:   gpusysfs.New(filepath.Join(cfg.RootPath, "sys")),
		created: time.Now(),
		changed: make(chan struct{}, 1),
	}
	r.tel, err = newTelemetry(set.TelemetrySettings, r)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// machineName is what receivers of the node's GPUs call a node without a name.
func machineName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "localhost"
	}
	return strings.ToLower(name)
}

// Start begins to read. It is an error if others may write to the folder. A folder that is not
// there may come.
func (r *allocationReceiver) Start(context.Context, component.Host) error {
	p := newPoller(r)
	if err := p.folder.Check(); errors.Is(err, jobmap.ErrUnsafe) {
		return fmt.Errorf("directory: %w", err)
	}
	// The context given to Start ends with it.
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.work.Go(func() { r.sysfs.Run(ctx) })
	r.work.Go(func() { p.run(ctx) })
	r.work.Go(func() { r.emitUntil(ctx) })
	return nil
}

// Shutdown waits for the reading and the emission that are under way. It ends no series: a restart
// is no gap.
func (r *allocationReceiver) Shutdown(context.Context) error {
	if r.cancel != nil {
		r.cancel()
		r.work.Wait()
	}
	r.tel.builder.Shutdown()
	return nil
}

// age of the newest snapshot, by the monotonic clock.
func (r *allocationReceiver) age() time.Duration {
	if s := r.newest.Load(); s != nil {
		return time.Since(s.At)
	}
	return time.Since(r.created)
}

// fresh reports whether a snapshot is young enough to be emitted.
func (r *allocationReceiver) fresh(s *snapshot.Snapshot, now time.Time) bool {
	return now.Sub(s.At) <= 3*r.cfg.PollInterval
}

// emitNow has an emission made now. It does not wait for it.
func (r *allocationReceiver) emitNow() {
	select {
	case r.changed <- struct{}{}:
	default: // one is due already, and will take what is newest then
	}
}

func (r *allocationReceiver) emitUntil(ctx context.Context) {
	ticker := time.NewTicker(r.cfg.CollectionInterval)
	defer ticker.Stop()
	var causes logonce.Causes
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-r.changed:
		}
		r.emit(ctx, &causes)
	}
}

// emit forwards the newest snapshot, unless it is too old.
func (r *allocationReceiver) emit(ctx context.Context, causes *logonce.Causes) {
	now := time.Now()
	s := r.newest.Load()
	if s == nil || !r.fresh(s, now) {
		return // the poller logs the cause
	}
	md := s.Metrics(r.sent, &r.origin)
	points := md.DataPointCount()
	ctx = r.obs.StartMetricsOp(ctx)
	err := r.next.ConsumeMetrics(ctx, md)
	r.obs.EndMetricsOp(ctx, "job_map", points, err)
	if err == nil {
		r.sent = s
		return
	}
	if causes.Due("refused", now) {
		r.logger.Warn("the next component refused gpu.allocation; it is sent again with the next interval", zap.Error(err))
	}
}
