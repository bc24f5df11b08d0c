// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"context"
	"time"

	"go.uber.org/zap"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/internal/miglayout"
	"github.com/otelcol-gpu/otelcol-gpu/internal/sharing"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/complete"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/kubelet"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/snapshot"
)

// poller asks the kubelet and replaces the snapshot. One goroutine runs it.
type poller struct {
	r       *allocationReceiver
	builder snapshot.Builder
	causes  logonce.Causes
	// unusable are the pods with annotations that cannot be used.
	unusable logonce.Causes
	failing  bool // the last call of List failed, and this was logged
	there    bool // the kubelet's socket was there once
	judge    complete.Judge
	host     host

	allocatable   *podresources.AllocatableResourcesResponse // the last answer
	allocatableAt time.Time                                  // when it was given
}

// soonest is the time between two polls after changes in the Kubernetes API: a
// kubelet limits calls.
const soonest = time.Second

// run asks at once, then every poll interval, and when the Kubernetes API or sysfs has
// changed: the kubelet's answer at that time is what is emitted. A poll that takes longer
// than the interval is followed by the next at once.
func (p *poller) run(ctx context.Context) {
	ticker := time.NewTicker(p.r.cfg.PollInterval)
	defer ticker.Stop()
	news := p.r.api.Load().Changes()
	sysfs := p.host.reader.Changed()
	for {
		began := time.Now()
		p.poll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			continue
		case <-news:
		case <-sysfs:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(soonest, p.r.cfg.PollInterval) - time.Since(began)):
		}
	}
}

// poll asks once. A List that fails, or does not name the node's pods, leaves the
// snapshot as it is: it ages.
func (p *poller) poll(ctx context.Context) {
	a := p.r.source.Ask(ctx)
	if ctx.Err() != nil {
		return // shut down: the error is not the kubelet's
	}
	if a.ListErr == nil && !p.judge.Complete(p.builder.Read.Pods(&a)) {
		a.ListErr = kubelet.ErrIncomplete
	}
	p.report(ctx, a)
	if a.ListErr != nil {
		return
	}
	p.keepAllocatable(&a)
	old := p.r.newest.Load()
	v := p.r.api.Load().View(time.Now())
	v.MIG = miglayout.Current(time.Now())
	v.Sysfs = p.host.snapshot(ctx, p.builder.Read.Local(&a, v))
	if ctx.Err() != nil {
		return
	}
	s, tl := p.builder.Build(a, v, old)
	p.r.newest.Store(s)
	p.r.api.Load().Want(tl.Wanted())
	p.r.tel.counted(ctx, &tl)
	p.reportOdd(s, &tl, v)
	// Nothing was emitted for a while, if the last snapshot was too old.
	if old == nil || !p.r.fresh(old, s.At) || !old.SameAs(s) {
		p.r.emitNow()
	}
}

// keepAllocatable takes what the kubelet has from its last answer where the call
// of this poll failed, as long as a snapshot would be trusted: what a node has
// seldom changes, and a single slow answer is no reason to know of no free device.
func (p *poller) keepAllocatable(a *kubelet.Answer) {
	if a.AllocatableErr == nil {
		p.allocatable, p.allocatableAt = a.Allocatable, a.At
		return
	}
	if p.allocatable != nil && a.At.Sub(p.allocatableAt) <= 3*p.r.cfg.PollInterval {
		a.Allocatable = p.allocatable
	}
}

// report counts the results of the calls, and logs each cause once.
func (p *poller) report(ctx context.Context, a kubelet.Answer) {
	now := time.Now()
	list, allocatable := kubelet.Classify(a.ListErr), kubelet.Classify(a.AllocatableErr)
	if p.expectsNone(list) {
		return
	}
	p.r.tel.called(ctx, "allocatable", allocatable)
	p.r.tel.called(ctx, "list", list)
	switch {
	case a.ListErr != nil:
		if p.causes.Due("list "+string(list), now) {
			p.failing = true
			p.r.logger.Warn("the kubelet does not list the owners of devices",
				zap.String("outcome", string(list)), zap.String("remedy", kubelet.Remedies[list]),
				zap.String("cause", kubelet.Cause(a.ListErr)), zap.String("socket", p.r.cfg.Socket))
		}
		return
	case p.failing:
		p.failing = false
		p.r.logger.Info("the kubelet lists the owners of devices again")
	}
	if a.AllocatableErr != nil && p.causes.Due("allocatable "+string(allocatable), now) {
		p.r.logger.Warn("the kubelet does not list its devices: after three poll intervals none is known to be free",
			zap.String("outcome", string(allocatable)), zap.String("remedy", kubelet.Remedies[allocatable]),
			zap.String("cause", kubelet.Cause(a.AllocatableErr)))
	}
}

// expectsNone reports whether the kubelet's socket is absent, as it may be, and logs
// once that it is, and that it appeared.
func (p *poller) expectsNone(list kubelet.Outcome) bool {
	away := list == kubelet.Absent && p.r.cfg.Optional && !p.there
	switch was := p.r.away.Swap(away); {
	case away && !was:
		p.r.logger.Info("no kubelet here: owners of devices are those of the exporter's labels until the socket exists",
			zap.String("socket", p.r.cfg.Socket))
	case !away && was:
		p.r.logger.Info("the kubelet's socket exists", zap.String("socket", p.r.cfg.Socket), zap.String("node", p.r.cfg.NodeName))
	}
	if !away && !p.there {
		p.there = true
		for _, report := range p.r.doubts {
			report()
		}
	}
	return away
}

// reportOdd logs what is wrong with an answer, each cause once.
func (p *poller) reportOdd(s *snapshot.Snapshot, tl *snapshot.Tally, v snapshot.View) {
	warn := func(cause, message string, n int) {
		if n > 0 && p.causes.Due(cause, s.At) {
			p.r.logger.Warn(message, zap.Int("count", n))
		}
	}
	warn("bad_id", "the kubelet lists devices with an id or resource that is empty, too long or not printable: they are left out", tl.Refused[snapshot.BadID])
	warn("bad_holder", "the kubelet lists devices of containers without a valid name: their owner is unknown", tl.Refused[snapshot.BadOwner])
	warn("containers_limit", "more containers own devices than max_containers allows: the rest is left out, and no device is known to be free", tl.Refused[snapshot.ContainersLimit])
	warn("devices_limit", "the kubelet lists more devices than max_devices allows: the rest is left out", tl.Refused[snapshot.DevicesLimit])
	warn("shares", "the kubelet did not list the replicas of shared devices: shares are computed from those that are held", tl.SharesAssumed)
	warn("contested", "the kubelet lists devices under several containers at once, as kubelets before 1.34 do with pods that are finished: each is emitted", s.States.Contested)
	for _, u := range tl.Unusable {
		if p.unusable.First(u.Scheduler+" "+u.Pod.String()+" "+sharing.Problem(u.Err), s.At) {
			p.r.logger.Warn("what a scheduler wrote on a pod cannot be used: which board it has is not known",
				zap.String("scheduler", u.Scheduler), zap.String("k8s.namespace.name", u.Pod.Namespace),
				zap.String("k8s.pod.name", u.Pod.Name), zap.String("cause", u.Err.Error()))
		}
	}
	if !v.DRA {
		warn("dra", "containers own GPUs through ResourceClaims (DRA): they have no gpu.allocation, since the Kubernetes API is not read for them (dra::enabled, auth_type)", s.States.UnresolvedDRA)
	}
}
