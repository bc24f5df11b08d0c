// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuschedulingreceiver

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/places"
	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
	"github.com/otelcol-gpu/otelcol-gpu/internal/seriesends"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/capacity"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/cluster"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/durations"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/metadata"
)

// The kinds of objects of the watch of pods, as telemetry names them.
const (
	podObjects   = "pods"
	claimObjects = "resource_claims"
)

// schedulingReceiver evaluates on a timer what it knows of nodes and pods.
type schedulingReceiver struct {
	cfg     *Config
	sender  *seriesends.Sender
	obs     *receiverhelper.ObsReport
	tel     *telemetry
	logger  *zap.Logger
	version string
	agent   string // User-Agent
	created time.Time

	member *gpupods.Member // of the pods' watch; nil: nothing is read
	source *cluster.Source // from Start on, under mu
	mu     sync.Mutex

	// The following are the loop's own.
	evaluator *capacity.Evaluator
	tracker   *durations.Tracker
	places    *places.Set
	tracked   *gpupods.Snapshot // that the tracker saw last
	before    pmetric.Metrics   // that was sent last

	nodes, pods atomic.Int64 // of the last evaluation

	cancel context.CancelFunc // nil until Start
	done   chan struct{}
}

func newReceiver(set receiver.Settings, cfg *Config, next consumer.Metrics) (*schedulingReceiver, error) {
	resources, err := resourcenames.New(cfg.ResourceNames)
	if err != nil {
		return nil, err
	}
	r := &schedulingReceiver{
		cfg: cfg, logger: set.Logger, version: set.BuildInfo.Version, created: time.Now(),
		agent:  "otelcol-gpu/" + set.BuildInfo.Version + " " + set.ID.String(),
		sender: seriesends.New(next, cfg.MaxPods, nil),
		places: places.New(cfg.MaxQueues),
		before: pmetric.NewMetrics(),
	}
	r.evaluator = capacity.New(capacity.Config{
		Window: cfg.RequestWindow, MaxPods: cfg.MaxPods, IsDevice: resources.Match, Places: r.places,
	})
	r.tracker = durations.New(r.places)
	if r.obs, err = receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, Transport: "http", ReceiverCreateSettings: set,
	}); err != nil {
		return nil, err
	}
	if r.tel, err = newTelemetry(set.TelemetrySettings, r); err != nil {
		return nil, err
	}
	if cfg.AuthType != k8sclient.None {
		r.member, err = gpupods.Join(gpupods.Config{Client: cfg.Config, Keys: cfg.Keys}, gpupods.Settings{
			Need: cfg.need(), Telemetry: r.tel, Logger: set.Logger, UserAgent: r.agent,
		})
	}
	return r, err
}

// Start begins to follow the Kubernetes API. It does not wait for it.
func (r *schedulingReceiver) Start(context.Context, component.Host) error {
	client, err := r.cfg.REST(r.agent)
	if err != nil {
		return err
	}
	if client == nil {
		r.logger.Warn("auth_type is none: nothing is known of nodes and pods, and nothing is emitted")
		return nil
	}
	resources, err := resourcenames.New(r.cfg.ResourceNames)
	if err != nil {
		return err
	}
	source, err := cluster.New(r.cfg.cluster(resources), client, r.tel, r.logger)
	if err != nil {
		return fmt.Errorf("the Kubernetes API cannot be followed: %w", err)
	}
	if err := r.member.Start(); err != nil {
		return err
	}
	source.Start()
	r.mu.Lock()
	r.source = source
	r.mu.Unlock()
	// The context given to Start ends with it.
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.done = cancel, make(chan struct{})
	go r.run(ctx)
	return nil
}

// Shutdown ends what Start began, and waits for it. It ends no series: a restart is no gap.
func (r *schedulingReceiver) Shutdown(context.Context) error {
	if r.cancel != nil {
		r.cancel()
		<-r.done
		r.source.Shutdown()
	}
	r.member.Shutdown()
	r.tel.builder.Shutdown()
	return nil
}

// asOf is how old what is known of each kind of object is; the time of the creation where
// nothing was ever listed.
func (r *schedulingReceiver) asOf(now time.Time) map[string]time.Time {
	r.mu.Lock()
	source := r.source
	r.mu.Unlock()
	if source == nil {
		return nil
	}
	out := source.AsOf(now)
	out[podObjects], _ = r.member.AsOf(now)
	if r.member.ClaimsServed() {
		out[claimObjects], _ = r.member.ClaimsAsOf(now)
	}
	for object, at := range out {
		if at.IsZero() {
			out[object] = r.created
		}
	}
	return out
}

// run follows the transitions of pods as they change, and evaluates every interval.
func (r *schedulingReceiver) run(ctx context.Context) {
	defer close(r.done)
	ticker := time.NewTicker(r.cfg.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.member.Changed():
			r.observe(ctx)
		case <-ticker.C:
			r.observe(ctx)
			r.evaluate(ctx)
		}
	}
}

// observe takes in the transitions of pods, where there are others than before.
func (r *schedulingReceiver) observe(ctx context.Context) {
	pods := r.member.Snapshot()
	if pods == nil || pods == r.tracked {
		return
	}
	r.tracked = pods
	seen := r.tracker.Observe(time.Now(), pods.Pods)
	r.tel.observed(ctx, &seen)
}

// fresh is whether what is as of a time can still be taken for what is there now.
func (r *schedulingReceiver) fresh(at, now time.Time) bool { return now.Sub(at) <= 3*r.cfg.Interval }

// stale is a kind of object without which nothing can be said, and of which nothing is known for
// three intervals; "" for none.
func (r *schedulingReceiver) stale(now time.Time) string {
	asOf := r.asOf(now)
	for _, object := range []string{cluster.NodeObjects, podObjects} {
		if !r.fresh(asOf[object], now) {
			return object
		}
	}
	return ""
}

// dra is whether it is known now which devices drivers have, and which of them pods hold through
// claims. Where one of both is not, none of these devices is known to be free.
func (r *schedulingReceiver) dra(now time.Time, pods *gpupods.Snapshot) bool {
	devices, ok := r.source.SlicesAsOf(now)
	if !ok || !pods.Claims || !r.fresh(devices, now) {
		return false
	}
	claims, ok := r.member.ClaimsAsOf(now)
	return ok && r.fresh(claims, now)
}

// known are the nodes with their devices, and the pods with what they request, as far as both
// are known.
func (r *schedulingReceiver) known(now time.Time, pods *gpupods.Snapshot) ([]*capacity.Node, *gpupods.Snapshot) {
	dra := r.dra(now, pods)
	nodes := r.source.Nodes()
	pods = r.source.Served().Requests(pods, nodes)
	if !dra {
		return nodes, pods.WithoutClaims()
	}
	return cluster.WithSlices(nodes, r.source.Slices()), pods
}

// evaluate sends the figures of this moment on. Where they are not known any more it ends
// their series: old ones would look as if they were those of now.
func (r *schedulingReceiver) evaluate(ctx context.Context) {
	now := time.Now()
	md := pmetric.NewMetrics()
	ms := r.scope(md)
	pods := r.member.Snapshot()
	stale := r.stale(now)
	switch {
	case stale != "":
		if r.tel.logged.Due("stale", now) {
			r.logger.Warn("the Kubernetes API was not followed for three intervals: nothing is emitted until it is", zap.String("object", stale))
		}
	case pods == nil || !r.source.Listed(): // the first lists are under way
		return
	case !pods.Whole: // which is counted and logged: any device may be held by a pod that was left out
	default:
		nodes, pods := r.known(now, pods)
		f := r.evaluator.Evaluate(now, nodes, pods)
		r.nodes.Store(int64(len(nodes)))
		r.pods.Store(int64(len(pods.Pods)))
		f.Put(ms, now, r.cfg.Nodes)
		r.tracker.Forget(r.places.Expire(now))
		r.tracker.Put(ms, now)
		r.tel.evaluated(ctx, time.Since(now), f, r.places.Refused())
	}
	r.send(ctx, md, now)
}

func (r *schedulingReceiver) scope(md pmetric.Metrics) pmetric.MetricSlice {
	rm := md.ResourceMetrics().AppendEmpty()
	if r.cfg.ClusterName != "" {
		rm.Resource().Attributes().PutStr(names.K8sClusterName, r.cfg.ClusterName)
	}
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(metadata.ScopeName)
	sm.Scope().SetVersion(r.version)
	return sm.Metrics()
}

func metricsOf(md pmetric.Metrics) pmetric.MetricSlice {
	if md.ResourceMetrics().Len() == 0 {
		return pmetric.NewMetricSlice()
	}
	return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
}

// send passes md on, with the ends of the series that it has no longer.
func (r *schedulingReceiver) send(ctx context.Context, md pmetric.Metrics, now time.Time) {
	sent := pmetric.NewMetrics()
	md.CopyTo(sent)
	end(metricsOf(r.before), metricsOf(md), pcommon.NewTimestampFromTime(now))
	r.before = sent
	n := md.DataPointCount()
	if n == 0 {
		return
	}
	ctx = r.obs.StartMetricsOp(ctx)
	err := r.sender.ConsumeMetrics(ctx, md)
	r.obs.EndMetricsOp(ctx, "kubernetes", n, err)
	if err == nil || ctx.Err() != nil {
		return
	}
	r.tel.builder.GpuSchedulingEvaluationsFailed.Add(ctx, 1)
	if r.tel.logged.Due("refused", now) {
		r.logger.Warn("the next component refused an evaluation; the next one follows with the next interval", zap.Error(err))
	}
}
