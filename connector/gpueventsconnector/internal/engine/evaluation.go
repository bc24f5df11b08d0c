// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/servicerules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// moment is one evaluation of one service. All metrics of an evaluation have
// one timestamp and come in one batch, which may hold several evaluations.
type moment struct {
	service subject.Service
	at      pcommon.Timestamp
}

// evaluation is what the rules read of one evaluation, and whether the service
// exists.
type evaluation struct {
	moment
	servicerules.Evaluation
	gone bool // the summary forgot the service: its state has ended
	live bool // there is a value
}

// batch are the evaluations of one batch.
type batch struct {
	evaluations []evaluation
	index       map[moment]int
}

func (b *batch) at(m moment) *evaluation {
	if n := len(b.evaluations); n > 0 && b.evaluations[n-1].moment == m {
		return &b.evaluations[n-1]
	}
	i, ok := b.index[m]
	if !ok {
		if b.index == nil {
			b.index = map[moment]int{}
		}
		i = len(b.evaluations)
		b.index[m] = i
		b.evaluations = append(b.evaluations, evaluation{moment: m, Evaluation: servicerules.NewEvaluation()})
	}
	return &b.evaluations[i]
}

func (b *batch) reset() {
	b.evaluations = b.evaluations[:0]
	clear(b.index)
}

// verifyEnds accepts the end of gpu.service.partial as the end of its service only where the
// batch has no value of the service at that time or later. Otherwise it is unknown
// whether the service is partial, which changes nothing.
func (b *batch) verifyEnds() {
	if !slices.ContainsFunc(b.evaluations, func(ev evaluation) bool { return ev.gone }) {
		return
	}
	live := map[subject.Service]bool{}
	for i := len(b.evaluations) - 1; i >= 0; i-- {
		ev := &b.evaluations[i]
		live[ev.service] = live[ev.service] || ev.live
		ev.gone = ev.gone && !live[ev.service]
	}
}

// read takes a point of an evaluation, and reports whether it is valid.
func (b *batch) read(resource pcommon.Map, metric string, p pmetric.NumberDataPoint) (valid bool) {
	s := serviceOf(resource, p.Attributes())
	v, gone := points.Value(p), p.Flags().NoRecordedValue()
	if s.Name == "" || (math.IsNaN(v) || math.IsInf(v, 0)) && !gone {
		return false
	}
	if gone && metric != names.ServicePartial.Name {
		return true // a series that ends for a while; the service itself ends with its state
	}
	ev := b.at(moment{s, p.Timestamp()})
	if gone {
		ev.gone = true
		return true
	}
	ev.live = true
	switch metric {
	case names.ServicePartial.Name:
		ev.Partial = v
	case names.ServiceIdleDevices.Name:
		ev.Idle = v
	case names.ServicePods.Name:
		ev.CountPods(text(names.GPUPodState, resource, p.Attributes()), int64(v))
	}
	return true
}

// serviceOf reads the service that a point is about. Its identity is on the point, or on
// the resource where a pipeline moved it.
func serviceOf(resource, point pcommon.Map) subject.Service {
	return subject.Service{
		Cluster:   text(names.K8sClusterName, resource, point),
		Namespace: text(names.K8sNamespaceName, resource, point),
		Name:      text(names.ServiceName, resource, point),
	}
}

// gather collects the details of the evaluations with events.
func gather(changes []unfinished, md pmetric.Metrics) map[moment]*servicerules.Details {
	known := make(map[moment]*servicerules.Details, len(changes))
	for _, c := range changes {
		known[c.of] = servicerules.NewDetails()
	}
	eachPoint(md, func(metric string, resource pcommon.Map, p pmetric.NumberDataPoint) {
		if !servicerules.ReadsDetails(metric) {
			return
		}
		v := points.Value(p)
		if math.IsNaN(v) {
			return
		}
		if d := known[moment{serviceOf(resource, p.Attributes()), p.Timestamp()}]; d != nil {
			d.Add(metric, v, text(names.GPUPodState, resource, p.Attributes()), text(names.K8sPodName, resource, p.Attributes()))
		}
	})
	for _, d := range known {
		d.Finish()
	}
	return known
}
