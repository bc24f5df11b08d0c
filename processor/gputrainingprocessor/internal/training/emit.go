// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package training

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Metrics writes the figures: one resource a holder and run. A figure that is not known any more
// ends its series once. describe writes the scope.
func Metrics(all []Figures, now time.Time, describe func(pcommon.InstrumentationScope)) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for i := range all {
		f := &all[i]
		rm := pmetric.NewResourceMetrics()
		f.Holder.put(rm.Resource().Attributes())
		sm := rm.ScopeMetrics().AppendEmpty()
		describe(sm.Scope())
		w := writer{f: f, dst: sm.Metrics(), at: pcommon.NewTimestampFromTime(now)}
		w.figure(names.GPUTrainingMFU, f.MFUStep, names.GPUTrainingBasis, names.TrainingBasisStep)
		w.figure(names.GPUTrainingMFU, f.MFUWall, names.GPUTrainingBasis, names.TrainingBasisWall)
		w.figure(names.GPUTrainingThroughput, f.Throughput)
		w.figure(names.GPUTrainingDeviceThroughput, f.DeviceThroughput)
		w.figure(names.GPUTrainingGoodput, f.GoodputHour, names.GPUTrainingWindow, names.TrainingWindowHour)
		w.figure(names.GPUTrainingGoodput, f.GoodputRun, names.GPUTrainingWindow, names.TrainingWindowRun)
		w.figure(names.GPUTrainingDataWaitRatio, f.DataWait)
		w.counter(names.GPUTrainingRestarts, f.Restarts)
		w.counter(names.GPUTrainingLostSteps, f.LostSteps)
		rm.MoveTo(md.ResourceMetrics().AppendEmpty())
	}
	return md
}

type writer struct {
	f       *Figures
	dst     pmetric.MetricSlice
	at      pcommon.Timestamp
	metrics map[string]pmetric.NumberDataPointSlice
}

func (w *writer) point(metric names.Metric, attributes ...string) pmetric.NumberDataPoint {
	if w.metrics == nil {
		w.metrics = map[string]pmetric.NumberDataPointSlice{}
	}
	dps, ok := w.metrics[metric.Name]
	if !ok {
		dps = metric.Init(w.dst.AppendEmpty())
		w.metrics[metric.Name] = dps
	}
	p := dps.AppendEmpty()
	p.SetTimestamp(w.at)
	if w.f.Run != "" {
		p.Attributes().PutStr(names.TrainingRunID, w.f.Run)
	}
	for i := 0; i < len(attributes); i += 2 {
		p.Attributes().PutStr(attributes[i], attributes[i+1])
	}
	return p
}

func (w *writer) figure(metric names.Metric, v *float64, attributes ...string) {
	if metric.Name == names.GPUTrainingMFU.Name && w.f.Peak != "" {
		attributes = append(attributes, names.GPUTrainingPeak, string(w.f.Peak))
	}
	series := metric.Name
	if len(attributes) > 1 {
		series += attributes[1]
	}
	switch {
	case v != nil:
		w.point(metric, attributes...).SetDoubleValue(*v)
		w.f.run.emitted[series] = true
	case w.f.run.emitted[series]:
		// An end is a Metric of its own: the Prometheus exporter reads no further in it.
		apart := writer{f: w.f, dst: w.dst, at: w.at}
		apart.point(metric, attributes...).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		delete(w.f.run.emitted, series)
	}
}

func (w *writer) counter(metric names.Metric, v int64) {
	p := w.point(metric)
	p.SetStartTimestamp(pcommon.NewTimestampFromTime(w.f.Since))
	p.SetIntValue(v)
}
