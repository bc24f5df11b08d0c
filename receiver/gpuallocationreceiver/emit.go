// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
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

func newResource(md pmetric.Metrics, h holder, cfg *Config, version string) pmetric.NumberDataPointSlice {
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
		attrs.PutStr(names.K8sContainerName, h.container)
	}
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(metadata.ScopeName)
	sm.Scope().SetVersion(version)
	return names.GPUAllocation.Init(sm.Metrics().AppendEmpty())
}

func (a *allocation) put(p pmetric.NumberDataPoint, at pcommon.Timestamp) {
	p.SetTimestamp(at)
	p.SetDoubleValue(a.share)
	attrs := p.Attributes()
	attrs.EnsureCapacity(5)
	attrs.PutStr(names.HwID, a.hwID)
	attrs.PutStr(names.K8sResourceName, a.resource)
	attrs.PutStr(names.GPUAttributionSource, names.SourcePodResources)
	// The kubelet's ids of time-slicing and MPS are the same.
	sharing := names.SharingNone
	if a.shared {
		sharing = names.SharingTimeSlicing
	}
	attrs.PutStr(names.GPUSharing, sharing)
	attrs.PutBool(names.GPUAllocationResolved, a.resolved)
}
