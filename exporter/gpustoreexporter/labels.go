// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/gpustoreexporter"

import (
	"context"
	"slices"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// resourceLabels are the resource attributes that become labels, as the
// processor transform/prometheus of the shipped configurations keeps them
// (docs/decisions/0006); a test compares the two.
var resourceLabels = []string{
	names.K8sClusterName, names.K8sNodeName, names.K8sNamespaceName, names.K8sPodName, names.K8sContainerName,
	names.HostName, names.ServerAddress, names.ServerPort,
	names.HwID, names.HwParent, names.HwModel, names.GPUIndex, names.GPUMIGProfile, names.GPUMIGInstanceID,
	names.GPUPartitionID, names.GPUPartitionProfile,
	names.ServiceNamespace, names.SlurmClusterName, names.SlurmJobID, names.SlurmJobUser, names.SlurmJobAccount, names.SlurmPartition,
}

// labeler does what the processor transform/prometheus does, so that the store
// has the same series whether it is behind that processor or not: behind it,
// there is nothing left to do.
type labeler struct{ exporter.Metrics }

func (*labeler) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

func (l *labeler) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	for _, rm := range md.ResourceMetrics().All() {
		prepareResource(rm)
	}
	return l.Metrics.ConsumeMetrics(ctx, md)
}

func prepareResource(rm pmetric.ResourceMetrics) {
	resource := rm.Resource().Attributes()
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			points.CompleteEnds(m)
		}
	}
	if service, ok := resource.Get(names.ServiceName); ok {
		// On the resource it would turn into target_info and the label job.
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				points.Each(m, func(attributes pcommon.Map, _ pcommon.Timestamp, _ bool) {
					service.CopyTo(attributes.PutEmpty(names.ServiceName))
				})
			}
		}
	}
	_, onNode := resource.Get(names.K8sNodeName)
	_, onSlurm := resource.Get(names.SlurmClusterName)
	resource.RemoveIf(func(key string, _ pcommon.Value) bool {
		return !slices.Contains(resourceLabels, key) || onNode && key == names.HostName || !onSlurm && key == names.ServiceNamespace
	})
}
