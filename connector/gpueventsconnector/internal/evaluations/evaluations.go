// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package evaluations reads what gpu_summary has computed about services: for each service
// and time one evaluation.
package evaluations

import (
	"cmp"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/servicerules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// Moment is one evaluation of one service. All metrics of an evaluation have
// one timestamp and come in one batch, which may hold several evaluations.
type Moment struct {
	Service subject.Service
	At      pcommon.Timestamp
}

// Evaluation is what the rules read of one evaluation, and whether the service
// exists.
type Evaluation struct {
	Moment
	servicerules.Evaluation
	Gone bool // the summary forgot the service: its state has ended
	Live bool // there is a value
}

// Batch are the evaluations of one batch. The zero Batch is empty.
type Batch struct {
	all   []Evaluation
	index map[Moment]int
}

// Sorted returns the evaluations in the order of their times. They are valid until Reset.
func (b *Batch) Sorted() []Evaluation {
	slices.SortStableFunc(b.all, func(x, y Evaluation) int { return cmp.Compare(x.At, y.At) })
	b.verifyEnds()
	return b.all
}

// Empty reports whether nothing was read.
func (b *Batch) Empty() bool { return len(b.all) == 0 }

func (b *Batch) at(m Moment) *Evaluation {
	if n := len(b.all); n > 0 && b.all[n-1].Moment == m {
		return &b.all[n-1]
	}
	i, ok := b.index[m]
	if !ok {
		if b.index == nil {
			b.index = map[Moment]int{}
		}
		i = len(b.all)
		b.index[m] = i
		b.all = append(b.all, Evaluation{Moment: m, Evaluation: servicerules.NewEvaluation()})
	}
	return &b.all[i]
}

// Reset empties the batch.
func (b *Batch) Reset() {
	b.all = b.all[:0]
	clear(b.index)
}

// verifyEnds accepts the end of gpu.service.partial as the end of its service only where the
// batch has no value of the service at that time or later. Otherwise it is unknown
// whether the service is partial, which changes nothing.
func (b *Batch) verifyEnds() {
	if !slices.ContainsFunc(b.all, func(ev Evaluation) bool { return ev.Gone }) {
		return
	}
	live := map[subject.Service]bool{}
	for i := len(b.all) - 1; i >= 0; i-- {
		ev := &b.all[i]
		live[ev.Service] = live[ev.Service] || ev.Live
		ev.Gone = ev.Gone && !live[ev.Service]
	}
}

// Read takes a point of an evaluation, and reports whether it is valid.
func (b *Batch) Read(resource pcommon.Map, metric string, p pmetric.NumberDataPoint) (valid bool) {
	s := serviceOf(resource, p.Attributes())
	v, gone := points.Value(p), p.Flags().NoRecordedValue()
	if s.Name == "" || (math.IsNaN(v) || math.IsInf(v, 0)) && !gone {
		return false
	}
	if gone && metric != names.ServicePartial.Name {
		return true // a series that ends for a while; the service itself ends with its state
	}
	ev := b.at(Moment{s, p.Timestamp()})
	if gone {
		ev.Gone = true
		return true
	}
	ev.Live = true
	switch metric {
	case names.ServicePartial.Name:
		ev.Partial = v
	case names.ServiceIdleDevices.Name:
		ev.Idle = v
	case names.ServicePods.Name:
		ev.CountPods(event.TextOf(names.GPUPodState, resource, p.Attributes()), int64(v))
	}
	return true
}

// serviceOf reads the service that a point is about. Its identity is on the point, or on
// the resource where a pipeline moved it.
func serviceOf(resource, point pcommon.Map) subject.Service {
	s := subject.Service{
		Cluster:   event.TextOf(names.K8sClusterName, resource, point),
		Namespace: event.TextOf(names.K8sNamespaceName, resource, point),
		Name:      event.TextOf(names.ServiceName, resource, point),
	}
	if s.Namespace == "" {
		if s.Slurm = event.TextOf(names.SlurmClusterName, resource, point); s.Slurm != "" {
			s.Namespace = event.TextOf(names.ServiceNamespace, resource, point)
		}
	}
	return s
}

// unitOf is the pod that a point is about, or the job on its node.
func unitOf(resource, point pcommon.Map) string {
	if pod := event.TextOf(names.K8sPodName, resource, point); pod != "" {
		return pod
	}
	job, node := event.TextOf(names.SlurmJobID, resource, point), event.TextOf(names.K8sNodeName, resource, point)
	switch {
	case job == "":
		return ""
	case node == "":
		return "job " + job
	}
	return "job " + job + " on " + node
}

// Gather collects the details of evaluations from the batch that has them.
func Gather(of []Moment, md pmetric.Metrics) map[Moment]*servicerules.Details {
	known := make(map[Moment]*servicerules.Details, len(of))
	for _, m := range of {
		known[m] = servicerules.NewDetails()
	}
	eachPoint(md, func(metric string, resource pcommon.Map, p pmetric.NumberDataPoint) {
		if !servicerules.ReadsDetails(metric) {
			return
		}
		v := points.Value(p)
		if math.IsNaN(v) {
			return
		}
		if d := known[Moment{serviceOf(resource, p.Attributes()), p.Timestamp()}]; d != nil {
			d.Add(metric, v, event.TextOf(names.GPUPodState, resource, p.Attributes()), unitOf(resource, p.Attributes()))
		}
	})
	for _, d := range known {
		d.Finish()
	}
	return known
}

// eachPoint calls f with every gauge and sum point of md.
func eachPoint(md pmetric.Metrics, f func(metric string, resource pcommon.Map, p pmetric.NumberDataPoint)) {
	for _, rm := range md.ResourceMetrics().All() {
		resource := rm.Resource().Attributes()
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				dps, ok := points.Numbers(m)
				if !ok {
					continue
				}
				for _, p := range dps.All() {
					f(m.Name(), resource, p)
				}
			}
		}
	}
}
