// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/internal/miglayout"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/complete"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/kubelet"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/snapshot"
)

// source is where answers come from; the tests have another than the kubelet.
type source interface {
	// Ask asks once, and returns within four times the timeout that it was made with.
	Ask(ctx context.Context) kubelet.Answer
	// Close lets go of what Ask kept; nothing is asked any more.
	Close()
}

// allocationReceiver polls the kubelet in one goroutine and emits in another, and
// kubeAPI has its own, so that neither a kubelet that hangs nor an API server that
// is away nor a pipeline that blocks holds another up.
type allocationReceiver struct {
	cfg    *Config
	next   consumer.Metrics
	obs    *receiverhelper.ObsReport
	tel    *telemetry
	logger *zap.Logger
	origin snapshot.Origin
	reader snapshot.NodeReader
	source source
	sysfs  *gpusysfs.Reader
	api    atomic.Pointer[kubeapi.API] // nil where it is not asked

	// away is true while the kubelet's socket is absent, and was never there, and that
	// is no fault; doubts is what has to be known once it is there.
	away   atomic.Bool
	doubts []func()

	created time.Time
	newest  atomic.Pointer[snapshot.Snapshot] // nil until the kubelet answered
	changed chan struct{}                     // has room for one: owners are others
	spoke   bool                              // gpu.allocation was emitted; only emit touches it
	node    *snapshot.Node                    // that was accepted last; likewise
	unread  string                            // what was wrong with its annotation; likewise

	cancel context.CancelFunc // nil until Start
	work   sync.WaitGroup
}

func newReceiver(set receiver.Settings, cfg *Config, next consumer.Metrics) (*allocationReceiver, error) {
	if cfg.NodeName == "" {
		named := *cfg
		named.NodeName = machineName()
		cfg = &named
	}
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, Transport: "unix", ReceiverCreateSettings: set,
	})
	if err != nil {
		return nil, err
	}
	r := &allocationReceiver{
		cfg:    cfg,
		next:   next,
		obs:    obs,
		logger: set.Logger,
		origin: snapshot.Origin{
			Cluster: cfg.ClusterName, Node: cfg.NodeName, Version: set.BuildInfo.Version,
			Interval: max(cfg.CollectionInterval, cfg.PollInterval),
		},
		reader:  cfg.nodeReader(),
		source:  kubelet.New(cfg.Socket, cfg.Timeout, cfg.MaxMessageSize),
		sysfs:   gpusysfs.New(cfg.SysfsRoot),
		created: time.Now(),
		changed: make(chan struct{}, 1),
	}
	r.tel, err = newTelemetry(set.TelemetrySettings, r)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// machineName is the name that a kubelet gives to its node by default.
func machineName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "localhost"
	}
	return strings.ToLower(name)
}

// Start begins to ask. A kubelet that is not there is no error: it may come.
func (r *allocationReceiver) Start(context.Context, component.Host) error {
	resources, err := r.cfg.resources()
	if err != nil {
		return err
	}
	if err := r.connect(); err != nil {
		return err
	}
	p := &poller{r: r, builder: r.cfg.builder(resources), host: host{reader: r.sysfs, logger: r.logger}}
	p.judge.Own = complete.Pod{Namespace: r.cfg.PodNamespace, Name: r.cfg.PodName}
	// The context given to Start ends with it.
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	if api := r.api.Load(); api != nil {
		api.Start(ctx, &r.work)
	}
	r.work.Go(func() { r.sysfs.Run(ctx) })
	r.work.Go(func() { p.run(ctx) })
	r.work.Go(func() { r.emitUntil(ctx) })
	return nil
}

// connect makes the clients of the Kubernetes API. Where the process is in no
// cluster the receiver does without, and logs it.
func (r *allocationReceiver) connect() error {
	client, err := r.cfg.REST("otelcol-gpu/" + r.origin.Version + " gpu_allocation")
	switch {
	case errors.Is(err, k8sclient.ErrNotInCluster):
		warn := func() {
			r.logger.Warn("the Kubernetes API is not read: devices of ResourceClaims (DRA) have no gpu.allocation, the node has no gpu.node.schedulable, gpu.node.mig.reconfiguring and gpu.node.info, and MPS appears as time-slicing",
				zap.String("cause", kubelet.Cause(err)))
		}
		if r.cfg.Optional {
			r.doubts = append(r.doubts, warn)
			return nil
		}
		warn()
		return nil
	case err != nil || client == nil:
		return err
	}
	api, err := kubeapi.New(kubeapi.Config{
		Node: r.cfg.NodeName, Read: r.reader, DRA: r.cfg.DRA.Enabled, Drivers: r.cfg.DRA.drivers(), MaxDevices: r.cfg.MaxDevices,
		Sharing: r.cfg.sharingReader(),
	}, client, kubeapi.Telemetry{Count: r.tel.asked, Logger: r.logger}, r.nodeChanged)
	if err != nil {
		return err
	}
	r.api.Store(api)
	return nil
}

// Shutdown waits for the call and the emission that are under way, both of which
// it cancels. It ends no series: a restart is no gap.
func (r *allocationReceiver) Shutdown(context.Context) error {
	if r.cancel != nil {
		r.cancel()
		r.work.Wait()
		r.source.Close()
		r.api.Load().Close()
		miglayout.SetReconfiguring(r.origin.Node, time.Now(), false)
	}
	r.tel.builder.Shutdown()
	return nil
}

// age of the newest snapshot, by the monotonic clock: a wall clock that is set
// neither ages nor rejuvenates it.
func (r *allocationReceiver) age() time.Duration {
	if s := r.newest.Load(); s != nil {
		return time.Since(s.At)
	}
	return time.Since(r.created)
}

func (r *allocationReceiver) states() (snapshot.States, bool) {
	if s := r.newest.Load(); s != nil && r.fresh(s, time.Now()) {
		return s.States, true
	}
	return snapshot.States{}, false
}

// fresh reports whether a snapshot is young enough to be emitted.
func (r *allocationReceiver) fresh(s *snapshot.Snapshot, now time.Time) bool {
	return now.Sub(s.At) <= 3*r.cfg.PollInterval
}

// nodeChanged is called when the node is another.
func (r *allocationReceiver) nodeChanged() {
	r.publish(time.Now())
	r.emitNow()
}

// publish makes known to the receivers of this process whether the node's MIG layout is being
// changed. It returns what is known of the node.
func (r *allocationReceiver) publish(now time.Time) (node snapshot.Node, at time.Time, known bool) {
	node, at, known = r.api.Load().Node(now)
	miglayout.SetReconfiguring(r.origin.Node, now, known && node.Reconfiguring())
	return node, at, known
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

// emit forwards the newest snapshot and what is known of the node, each unless it
// is too old.
func (r *allocationReceiver) emit(ctx context.Context, causes *logonce.Causes) {
	now := time.Now()
	md := pmetric.NewMetrics()
	s := r.newest.Load()
	switch {
	case s == nil: // the poller logs the cause
	case r.fresh(s, now):
		md = s.Metrics(&r.origin)
		switch {
		case !s.Empty():
			r.spoke = true
		case r.spoke:
			s.Nothing(md, &r.origin)
		}
	default:
		if causes.Due("stale", now) {
			r.logger.Warn("the kubelet's last answer is older than three poll intervals: gpu.allocation is not emitted until it answers",
				zap.Duration("age", now.Sub(s.At)))
		}
	}
	if r.api.Load() == nil {
		r.reader.GivenInfo(md, now, &r.origin)
	}
	node, at, known := r.publish(now)
	if known {
		r.acknowledge(&node, now)
		node.AddTo(md, r.node, at, &r.origin)
	}
	points := md.DataPointCount()
	if points == 0 {
		return
	}
	ctx = r.obs.StartMetricsOp(ctx)
	err := r.next.ConsumeMetrics(ctx, md)
	r.obs.EndMetricsOp(ctx, "pod_resources", points, err)
	if err == nil && known {
		r.node = &node
	}
	if err != nil && causes.Due("refused", now) {
		r.logger.Warn("the next component refused gpu.allocation; it is sent again with the next interval", zap.Error(err))
	}
}

// acknowledge checks what a person has acknowledged on the node, and logs once what of it
// cannot be used.
func (r *allocationReceiver) acknowledge(node *snapshot.Node, now time.Time) {
	problem := ""
	if err := node.Acknowledge(now); err != nil {
		problem = err.Error()
	}
	if problem != "" && problem != r.unread {
		r.logger.Warn("annotation of the node is ignored", zap.String("annotation", health.ClearedAnnotation),
			zap.String("node", r.origin.Node), zap.String("cause", problem))
	}
	r.unread = problem
}
