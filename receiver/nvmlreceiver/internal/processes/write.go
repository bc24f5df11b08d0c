// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Write appends the metrics of a device's rows.
func (t *Table) Write(rows []Row, hwID string, at time.Time, to pmetric.MetricSlice) {
	now := pcommon.NewTimestampFromTime(at)
	var memory, used pmetric.NumberDataPointSlice
	for i := range rows {
		if r := &rows[i]; r.HasMem {
			if memory == (pmetric.NumberDataPointSlice{}) {
				memory = names.GPUProcessMemoryUsage.Init(to.AppendEmpty())
			}
			p := r.point(memory, hwID, now)
			p.SetIntValue(int64(math.Round(r.Memory)))
		}
	}
	for i := range rows {
		r := &rows[i]
		if !r.HasUsed {
			continue
		}
		if used == (pmetric.NumberDataPointSlice{}) {
			used = names.GPUProcessUtilization.Init(to.AppendEmpty())
		}
		for task, v := range r.Used {
			p := r.point(used, hwID, now)
			p.SetDoubleValue(v)
			p.Attributes().PutStr(names.GPUProcessTask, Tasks[task])
		}
	}
}

// point appends a point about the row, without its value.
func (r *Row) point(to pmetric.NumberDataPointSlice, hwID string, now pcommon.Timestamp) pmetric.NumberDataPoint {
	p := to.AppendEmpty()
	p.SetTimestamp(now)
	attrs := p.Attributes()
	attrs.PutStr(names.HwID, hwID)
	if r.PID > 0 {
		attrs.PutInt(names.ProcessPID, int64(r.PID))
	}
	for _, a := range [...]struct{ key, value string }{
		{names.GPUProcessType, r.Type},
		{names.ProcessName, r.Name},
		{names.ContainerID, r.Owner.ContainerID},
		{names.K8sPodUID, r.Owner.PodUID},
		{names.SlurmJobID, r.Owner.SlurmJob},
		{names.SystemdUnit, r.Owner.Unit},
		{names.GPUProcessOwner, r.Owner.Other},
	} {
		if a.value != "" {
			attrs.PutStr(a.key, a.value)
		}
	}
	return p
}
