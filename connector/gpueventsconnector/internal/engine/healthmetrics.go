// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/board"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// published are the series of one board, as they were published last.
type published struct {
	at      pcommon.Timestamp
	live    bool              // there is a state
	reasons map[string]reason // by name
}

// reason is what the attributes of a reason's series have beside its name.
type reason struct{ state, action string }

// Score is whether the score of boards is published.
type Score bool

// HealthMetrics returns the health of the boards that were judged, or became unknown,
// since the last call, and that of their nodes. Series that are no more end.
func (e *Engine) HealthMetrics(score Score, scope, version string) (md pmetric.Metrics, some bool) {
	s := e.devices
	if len(s.judged) == 0 {
		return pmetric.Metrics{}, false
	}
	md = pmetric.NewMetrics()
	nodes := map[subject.Node]pcommon.Timestamp{}
	for _, d := range slices.SortedFunc(maps.Keys(s.judged), func(a, b *device) int {
		return strings.Compare(a.ID.Cluster+"/"+a.ID.ID, b.ID.Cluster+"/"+b.ID.ID)
	}) {
		d.publish(md, e.fresh(d), bool(score), e.asOf(d), scope, version)
		n := subject.Node{Cluster: d.ID.Cluster, Name: d.Facts.Node}
		nodes[n] = max(nodes[n], d.health.published.at)
	}
	clear(s.judged)
	for _, n := range slices.SortedFunc(maps.Keys(nodes), func(a, b subject.Node) int {
		return strings.Compare(a.Cluster+"/"+a.Name, b.Cluster+"/"+b.Name)
	}) {
		e.publishNode(md, n, nodes[n], scope, version)
	}
	return md, md.DataPointCount() > 0
}

// Judged reports whether HealthMetrics has something.
func (e *Engine) Judged() bool { return len(e.devices.judged) > 0 }

func newScope(md pmetric.Metrics, scope, version string) (pcommon.Map, pmetric.MetricSlice) {
	rm := md.ResourceMetrics().AppendEmpty()
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(scope)
	sm.Scope().SetVersion(version)
	return rm.Resource().Attributes(), sm.Metrics()
}

// asOf is the time of what is known of a board: that of its last page, or of its
// exporter's without it, and the present for the end of its series.
func (e *Engine) asOf(d *device) pcommon.Timestamp {
	if !e.fresh(d) {
		return max(d.at+1, pcommon.NewTimestampFromTime(e.wall))
	}
	if x := e.exporters.all[d.exporter]; x != nil && d.lost.Level > 0 {
		return max(d.at, x.at)
	}
	return d.at
}

// publish writes the series of a board as of a time.
func (d *device) publish(md pmetric.Metrics, fresh, score bool, at pcommon.Timestamp, scope, version string) {
	p := &d.health.published
	v := d.health.board.Verdict()
	live := fresh && v.Known
	if !live && !p.live {
		return
	}
	attrs, ms := newScope(md, scope, version)
	d.Identify(attrs)
	p.at = at
	point := func(points pmetric.NumberDataPointSlice, is bool) pmetric.NumberDataPoint {
		dp := points.AppendEmpty()
		dp.SetTimestamp(p.at)
		dp.Attributes().PutStr(names.HwID, d.ID.ID)
		if !is {
			dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		}
		return dp
	}
	status := names.HwStatus.Init(ms.AppendEmpty())
	for _, state := range health.States() {
		dp := point(status, live)
		dp.Attributes().PutStr(names.HwType, names.HwTypeGPU)
		dp.Attributes().PutStr(names.HwState, state.String())
		if live {
			dp.SetIntValue(0)
			if state == v.State {
				dp.SetIntValue(1)
			}
		}
	}
	reasons := map[string]reason{}
	if live {
		for i := range v.Reasons {
			a := &v.Reasons[i]
			reasons[a.Reason.Name] = reason{a.State.String(), a.Action.String()}
		}
	}
	if len(reasons)+len(p.reasons) > 0 {
		all := names.GPUHealthReason.Init(ms.AppendEmpty())
		write := func(name string, r reason, is bool) {
			dp := point(all, is)
			if is {
				dp.SetIntValue(1)
			}
			dp.Attributes().PutStr(names.GPUHealthReason.Name, name)
			dp.Attributes().PutStr(names.HwState, r.state)
			dp.Attributes().PutStr(names.GPUHealthAction, r.action)
		}
		for _, name := range slices.Sorted(maps.Keys(p.reasons)) {
			if reasons[name] != p.reasons[name] {
				write(name, p.reasons[name], false)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(reasons)) {
			write(name, reasons[name], true)
		}
	}
	if dp := point(names.GPUHealthCoverage.Init(ms.AppendEmpty()), live); live {
		dp.SetDoubleValue(coverage(&v))
	}
	if score {
		if dp := point(names.GPUHealthScore.Init(ms.AppendEmpty()), live); live {
			dp.SetDoubleValue(v.Score)
		}
	}
	p.live, p.reasons = live, reasons
}

// coverage is how many of the reasons that fit have fresh inputs.
func coverage(v *board.Verdict) float64 {
	if v.Applicable == 0 {
		return 0
	}
	return float64(v.WithData) / float64(v.Applicable)
}

// publishNode writes the state of a node: that of its worst board, and none while the
// state of one of them is not known.
func (e *Engine) publishNode(md pmetric.Metrics, n subject.Node, at pcommon.Timestamp, scope, version string) {
	site := e.devices.sites[n]
	if site == nil || n.Name == "" {
		return
	}
	worst, known := health.OK, true
	for d := range site.devices {
		if d.Facts.Parent == "" {
			v := d.health.board.Verdict()
			known = known && v.Known && e.fresh(d)
			worst = max(worst, v.State)
		}
	}
	if !known && !site.published {
		return
	}
	site.published = known
	attrs, ms := newScope(md, scope, version)
	if n.Cluster != "" {
		attrs.PutStr(names.K8sClusterName, n.Cluster)
	}
	attrs.PutStr(names.K8sNodeName, n.Name)
	points := names.GPUNodeStatus.Init(ms.AppendEmpty())
	for _, state := range health.States() {
		dp := points.AppendEmpty()
		dp.SetTimestamp(at)
		dp.Attributes().PutStr(names.K8sNodeName, n.Name)
		dp.Attributes().PutStr(names.HwState, state.String())
		switch {
		case !known:
			dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		case state == worst:
			dp.SetIntValue(1)
		default:
			dp.SetIntValue(0)
		}
	}
}
