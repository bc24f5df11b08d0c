// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/metadata"
)

// metrics writes a snapshot: one resource for each container that holds devices,
// and one for the free devices of the node. Every point has the snapshot's time.
func (s *snapshot) metrics(cfg *Config, version string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	var points pmetric.NumberDataPointSlice
	for i, a := range s.allocations {
		if i == 0 || a.holder != s.allocations[i-1].holder {
			points = newResource(md, a.holder, cfg, version)
		}
		a.put(points.AppendEmpty(), pcommon.NewTimestampFromTime(s.at))
	}
	return md
}

// nothing writes that the node has no device any more, which no share can tell: a
// point without device and without value, of the snapshot's time.
func (s *snapshot) nothing(md pmetric.Metrics, cfg *Config, version string) {
	p := newResource(md, holder{}, cfg, version).AppendEmpty()
	p.SetTimestamp(pcommon.NewTimestampFromTime(s.at))
	p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	p.Attributes().PutStr(names.K8sNodeName, cfg.NodeName)
}

// addNode writes what is known of the node, as of a time.
func (s nodeState) addNode(md pmetric.Metrics, at time.Time, cfg *Config, version string) {
	ms := newScope(md, holder{}, cfg, version)
	point := func(m *names.Metric, is bool) {
		p := m.Init(ms.AppendEmpty()).AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		p.SetIntValue(0)
		if is {
			p.SetIntValue(1)
		}
		p.Attributes().PutStr(names.K8sNodeName, cfg.NodeName)
	}
	point(&names.GPUNodeSchedulable, s.schedulable)
	if s.hasMIG {
		point(&names.GPUNodeMIGReconfiguring, s.reconfiguring)
	}
}

func newResource(md pmetric.Metrics, h holder, cfg *Config, version string) pmetric.NumberDataPointSlice {
	m := newScope(md, h, cfg, version).AppendEmpty()
	m.Metadata().PutDouble(names.GPUAllocationInterval, max(cfg.CollectionInterval, cfg.PollInterval).Seconds())
	return names.GPUAllocation.Init(m)
}

func newScope(md pmetric.Metrics, h holder, cfg *Config, version string) pmetric.MetricSlice {
	rm := md.ResourceMetrics().AppendEmpty()
	attrs := rm.Resource().Attributes()
	attrs.EnsureCapacity(5)
	if cfg.ClusterName != "" {
		attrs.PutStr(names.K8sClusterName, cfg.ClusterName)
	}
	attrs.PutStr(names.K8sNodeName, cfg.NodeName)
	if h != (holder{}) {
		attrs.PutStr(names.K8sNamespaceName, h.namespace)
		attrs.PutStr(names.K8sPodName, h.pod)
		if h.container != "" { // several of the pod
			attrs.PutStr(names.K8sContainerName, h.container)
		}
	}
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(metadata.ScopeName)
	sm.Scope().SetVersion(version)
	return sm.Metrics()
}

func (a *allocation) put(p pmetric.NumberDataPoint, at pcommon.Timestamp) {
	p.SetTimestamp(at)
	p.SetDoubleValue(a.share)
	attrs := p.Attributes()
	attrs.EnsureCapacity(8)
	attrs.PutStr(names.HwID, a.hwID)
	attrs.PutStr(names.K8sResourceName, a.resource)
	attrs.PutStr(names.GPUAttributionSource, a.source)
	attrs.PutStr(names.GPUSharing, a.sharing)
	attrs.PutBool(names.GPUAllocationResolved, a.resolved)
	for _, known := range [...]struct{ key, value string }{
		{names.GPUMIGUUID, a.mig}, {names.HwParent, a.parent}, {names.GPUMIGProfile, a.profile},
	} {
		if known.value != "" {
			attrs.PutStr(known.key, known.value)
		}
	}
}
