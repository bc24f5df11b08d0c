// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"math"
	"math/bits"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/metadata"
)

// metrics writes the evaluation down, every point with the evaluation's time.
func (e *Evaluation) Metrics(version string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	md.ResourceMetrics().EnsureCapacity(len(e.services) + len(e.gone))
	w := writer{at: pcommon.NewTimestampFromTime(e.at), version: version}
	pods := e.pods
	for i := range e.services {
		f := &e.services[i]
		w.service(md.ResourceMetrics().AppendEmpty(), f, pods[:f.pods])
		pods = pods[f.pods:]
	}
	for i := range e.gone {
		w.gone(md.ResourceMetrics().AppendEmpty(), &e.gone[i])
	}
	return md
}

type writer struct {
	at       pcommon.Timestamp
	version  string
	identity pcommon.Map // of the service that is being written
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
func (w *writer) service(rm pmetric.ResourceMetrics, f *serviceFigures, pods []podPoint) {
	w.identity = putService(rm.Resource().Attributes(), f.key)
	ms := w.scope(rm, bits.OnesCount32(uint32(f.present))+1)
	w.seriesOf(ms, f, f.present, false)
	w.pods(ms, pods)
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
		if out.attr == "" {
			w.identify(dp, 0)
		} else {
			w.identify(dp, 1).PutStr(out.attr, out.attrValue)
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

// pods writes 1 for the state that each pod is in, and 0 once for those it left.
func (w *writer) pods(ms pmetric.MetricSlice, pods []podPoint) {
	if len(pods) == 0 {
		return
	}
	points := names.PodState.Init(ms.AppendEmpty())
	points.EnsureCapacity(len(pods))
	for i := range pods {
		p := &pods[i]
		w.pod(points.AppendEmpty(), p, p.state).SetIntValue(1)
		for st, left := range p.left {
			if left {
				w.pod(points.AppendEmpty(), p, podState(st)).SetIntValue(0)
			}
		}
	}
}

// gone writes the end of a pod's series.
func (w *writer) gone(rm pmetric.ResourceMetrics, p *podPoint) {
	w.identity = putService(rm.Resource().Attributes(), p.service)
	points := names.PodState.Init(w.scope(rm, 1).AppendEmpty())
	w.pod(points.AppendEmpty(), p, p.state).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
}

func (w *writer) pod(dp pmetric.NumberDataPoint, p *podPoint, st podState) pmetric.NumberDataPoint {
	attrs := w.identify(dp, 3)
	putUnit(attrs, p.pod)
	attrs.PutStr(names.GPUPodState, podStateNames[st])
	dp.SetTimestamp(w.at)
	return dp
}

// identify puts the service on a point, and leaves room for more attributes.
func (w *writer) identify(dp pmetric.NumberDataPoint, more int) pcommon.Map {
	attrs := dp.Attributes()
	attrs.EnsureCapacity(w.identity.Len() + more)
	w.identity.CopyTo(attrs)
	return attrs
}

func putService(attrs pcommon.Map, key serviceKey) pcommon.Map {
	attrs.EnsureCapacity(4)
	if isJob(key.cluster) {
		putJobService(attrs, key)
		return attrs
	}
	if key.cluster != "" {
		attrs.PutStr(names.K8sClusterName, key.cluster)
	}
	attrs.PutStr(names.K8sNamespaceName, key.namespace)
	attrs.PutStr(names.ServiceName, key.name)
	return attrs
}
