// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/metadata"
)

// metrics writes the evaluation down, every point with the evaluation's time.
func (e *Evaluation) Metrics(version string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	md.ResourceMetrics().EnsureCapacity(len(e.services) + len(e.pods))
	w := writer{at: pcommon.NewTimestampFromTime(e.at), version: version}
	for i := range e.services {
		w.service(md.ResourceMetrics().AppendEmpty(), &e.services[i])
	}
	for i := range e.pods {
		w.pod(md.ResourceMetrics().AppendEmpty(), &e.pods[i])
	}
	return md
}

type writer struct {
	at      pcommon.Timestamp
	version string
}

func (w *writer) scope(rm pmetric.ResourceMetrics, capacity int) pmetric.MetricSlice {
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(metadata.ScopeName)
	sm.Scope().SetVersion(w.version)
	sm.Metrics().EnsureCapacity(capacity)
	return sm.Metrics()
}

// service writes the live points, and then each end of a series in a metric of
// its own: the stock prometheus exporter stops reading a metric at the first end
// in it, so that live points and further ends behind it would be lost.
func (w *writer) service(rm pmetric.ResourceMetrics, f *serviceFigures) {
	putService(rm.Resource().Attributes(), f.key)
	ms := w.scope(rm, int(numSeries))
	w.seriesOf(ms, f, f.present, false)
	w.seriesOf(ms, f, f.ended, true)
}

func (w *writer) seriesOf(ms pmetric.MetricSlice, f *serviceFigures, set seriesSet, ended bool) {
	var metric *names.Metric
	var points pmetric.NumberDataPointSlice
	for s := range numSeries {
		if !set.has(s) {
			continue
		}
		out := &outputs[s]
		if out.metric != metric || ended {
			metric = out.metric
			points = metric.Init(ms.AppendEmpty())
		}
		dp := points.AppendEmpty()
		putService(dp.Attributes(), f.key)
		if out.attr != "" {
			dp.Attributes().PutStr(out.attr, out.attrValue)
		}
		dp.SetTimestamp(w.at)
		switch {
		case ended:
			dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		case metric.Kind == names.UpDownCounter:
			dp.SetIntValue(int64(math.Round(f.values[s])))
		default:
			dp.SetDoubleValue(f.values[s])
		}
	}
}

// pod writes 1 for the state that the pod is in, and 0 once for the state it left.
func (w *writer) pod(rm pmetric.ResourceMetrics, p *podPoint) {
	putService(rm.Resource().Attributes(), p.service)
	rm.Resource().Attributes().PutStr(names.K8sPodName, p.pod)
	points := names.PodState.Init(w.scope(rm, 1).AppendEmpty())
	point := func(st podState) pmetric.NumberDataPoint {
		dp := points.AppendEmpty()
		putService(dp.Attributes(), p.service)
		dp.Attributes().PutStr(names.K8sPodName, p.pod)
		dp.Attributes().PutStr(names.GPUPodState, podStateNames[st])
		dp.SetTimestamp(w.at)
		return dp
	}
	if p.ended {
		point(p.state).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		return
	}
	point(p.state).SetIntValue(1)
	if p.hasLeft {
		point(p.left).SetIntValue(0)
	}
}

func putService(attrs pcommon.Map, key serviceKey) {
	attrs.EnsureCapacity(5)
	if key.cluster != "" {
		attrs.PutStr(names.K8sClusterName, key.cluster)
	}
	attrs.PutStr(names.K8sNamespaceName, key.namespace)
	attrs.PutStr(names.ServiceName, key.name)
}
