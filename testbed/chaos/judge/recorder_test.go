// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

func TestRecorder(t *testing.T) {
	r := newRecorder()
	now := time.Now()
	md := pmetric.NewMetrics()
	add := func(namespace string, metric names.Metric, value float64, set func(pmetric.NumberDataPoint)) {
		rm := md.ResourceMetrics().AppendEmpty()
		a := rm.Resource().Attributes()
		a.PutStr(names.K8sNodeName, "a")
		a.PutStr(names.K8sNamespaceName, namespace)
		a.PutStr(names.K8sPodName, "p")
		a.PutStr(names.ServiceName, "s")
		out := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		out.SetName(metric.Name)
		dp := out.SetEmptyGauge().DataPoints().AppendEmpty()
		dp.SetTimestamp(pcommon.NewTimestampFromTime(now))
		dp.SetDoubleValue(value)
		set(dp)
	}
	on := func(p pmetric.NumberDataPoint) { p.Attributes().PutStr(names.HwID, "GPU-1") }
	add(fleet.Namespace, names.GPUUtilization, .5, on)
	add("hostile", names.GPUUtilization, .5, on)
	add(fleet.Namespace, names.GPUUtilization, .5, func(p pmetric.NumberDataPoint) { on(p); p.Attributes().PutStr(names.HwGPUTask, "encoder") })
	add(fleet.Namespace, names.ServicePartial, 1, func(pmetric.NumberDataPoint) {})
	add(fleet.Namespace, names.ServicePods, 3, func(p pmetric.NumberDataPoint) { p.Attributes().PutStr(names.GPUPodState, "missing") })
	add(fleet.Namespace, names.ServiceUtilization, .7, func(p pmetric.NumberDataPoint) { p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)) })
	add(fleet.Namespace, names.ServicePipeActive, .2, func(p pmetric.NumberDataPoint) { p.Attributes().PutStr(names.GPUPipe, "fp16") })
	require.NoError(t, r.takeMetrics(t.Context(), md))

	points, evaluations := r.ripe(now)
	assert.Empty(t, points, "they came later")
	assert.Empty(t, evaluations)
	points, evaluations = r.ripe(now.Add(time.Hour))
	require.Len(t, points, 1)
	assert.Equal(t, ownership.Owner{Namespace: fleet.Namespace, Pod: "p"}, points[0].Owner)
	require.Len(t, evaluations, 1)
	assert.Equal(t, 1., *evaluations[0].Partial)
	assert.Equal(t, map[string]float64{names.ServicePipeActive.Name + " fp16": .2}, evaluations[0].values, "the others have ended")
	assert.Equal(t, 3., evaluations[0].Pods["missing"])
	latest, devices := r.Newest()
	assert.Equal(t, "p", devices["a GPU-1"].Owner.Pod)
	assert.Contains(t, latest, "s")

	ld := plog.NewLogs()
	record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName(names.EventServicePartial)
	record.Attributes().PutStr(names.GPUEventID, "1")
	record.Attributes().PutStr(names.GPUEventKey, "gpu.service.partial/c/n/s")
	record.Attributes().PutStr(names.GPUEventState, names.EventRaised)
	for range 2 {
		require.NoError(t, r.takeLogs(t.Context(), ld))
	}
	require.Len(t, r.Events(), 1, "by its id")
	assert.Equal(t, 2, r.Events()[0].Posts)
}
