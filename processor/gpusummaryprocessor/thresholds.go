// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/metadata"
)

// putThresholds adds the settings that the figures of an evaluation follow, once for
// each cluster in it: readers of the figures explain them by these settings.
func (p *summaryProcessor) putThresholds(md pmetric.Metrics, now time.Time) {
	clusters := map[string]bool{}
	for _, rm := range md.ResourceMetrics().All() {
		name := ""
		if cluster, ok := rm.Resource().Attributes().Get(names.K8sClusterName); ok {
			name = cluster.Str()
		}
		clusters[name] = true
	}
	settings := []struct {
		metric names.Metric
		value  float64
	}{
		{names.SummaryWarmup, p.cfg.Warmup.Seconds()},
		{names.SummaryPartialThreshold, p.cfg.PartialThreshold},
		{names.SummaryIdleThreshold, p.cfg.IdleThreshold},
		{names.SummaryIdleFor, p.cfg.IdleFor.Seconds()},
	}
	for cluster := range clusters {
		rm := md.ResourceMetrics().AppendEmpty()
		sm := rm.ScopeMetrics().AppendEmpty()
		sm.Scope().SetName(metadata.ScopeName)
		sm.Scope().SetVersion(p.version)
		for _, s := range settings {
			point := s.metric.Init(sm.Metrics().AppendEmpty()).AppendEmpty()
			point.SetTimestamp(pcommon.NewTimestampFromTime(now))
			point.SetDoubleValue(s.value)
			if cluster != "" {
				point.Attributes().PutStr(names.K8sClusterName, cluster)
			}
		}
		if cluster != "" {
			rm.Resource().Attributes().PutStr(names.K8sClusterName, cluster)
		}
	}
}
