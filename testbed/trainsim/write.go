// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package trainsim

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// writer writes metrics of one process.
type writer struct {
	dst        pmetric.MetricSlice
	start, now pcommon.Timestamp
}

func (w writer) contract(steps []Step, model Model) {
	w.histogram("training.step.duration", "s", time.Second, steps, func(s Step) time.Duration { return s.Duration })
	w.histogram("training.data.wait.duration", "s", time.Second, steps, func(s Step) time.Duration { return s.Wait })
	var t Totals
	for _, s := range steps {
		t.add(s)
	}
	w.counter("training.tokens", "{token}", t.Tokens)
	w.counter("training.nonfinite", "{value}", t.NotFinite, "training.value", "loss")
	if len(steps) > 0 {
		w.gauge("training.step", "{step}", float64(steps[len(steps)-1].Number))
	}
	w.loss("training.loss", steps)
	for name, v := range map[string]float64{
		"training.model.parameters": float64(model.Parameters), "training.model.layers": float64(model.Layers),
		"training.model.attention.dimension": float64(model.Attention), "training.model.sequence.length": float64(model.Sequence),
		"training.flops_per_token": model.FLOPs,
	} {
		if v > 0 {
			w.gauge(name, "", v)
		}
	}
}

// megatron is megatron/core/telemetry of Megatron-LM with a log interval of one step.
func (w writer) megatron(steps []Step) {
	w.histogram("megatron.training.step_duration_ms", "ms", time.Millisecond, steps, func(s Step) time.Duration { return s.Duration })
	w.loss("megatron.training.loss", steps)
	var t Totals
	for _, s := range steps {
		t.add(s)
	}
	if t.NotFinite > 0 {
		w.counter("megatron.training.skipped_iters", "", t.NotFinite)
	}
	w.gauge("megatron.training.throughput_tflops", "", 400)
}

func (w writer) nemo(steps []Step) {
	var t Totals
	for _, s := range steps {
		t.add(s)
	}
	w.counter("nv.dl.training.tokens.processed", "{token}", t.Tokens)
}

func (w writer) metric(name, unit string) pmetric.Metric {
	m := w.dst.AppendEmpty()
	m.SetName(name)
	m.SetUnit(unit)
	return m
}

func (w writer) gauge(name, unit string, v float64) {
	p := w.metric(name, unit).SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(w.now)
	p.SetDoubleValue(v)
}

// loss is that of the newest step that has a finite one.
func (w writer) loss(name string, steps []Step) {
	for _, s := range slices.Backward(steps) {
		if finite(s.Loss) {
			w.gauge(name, "", s.Loss)
			return
		}
	}
}

func (w writer) counter(name, unit string, v int64, attributes ...string) {
	sum := w.metric(name, unit).SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := sum.DataPoints().AppendEmpty()
	p.SetStartTimestamp(w.start)
	p.SetTimestamp(w.now)
	p.SetIntValue(v)
	for i := 0; i < len(attributes); i += 2 {
		p.Attributes().PutStr(attributes[i], attributes[i+1])
	}
}

func (w writer) histogram(name, unit string, scale time.Duration, steps []Step, of func(Step) time.Duration) {
	h := w.metric(name, unit).SetEmptyHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := h.DataPoints().AppendEmpty()
	p.SetStartTimestamp(w.start)
	p.SetTimestamp(w.now)
	per := float64(time.Second / scale)
	counts := make([]uint64, len(bounds)+1)
	sum := 0.0
	for _, s := range steps {
		v := of(s).Seconds()
		sum += v * per
		i, _ := slices.BinarySearch(bounds, v)
		counts[i]++
	}
	scaled := make([]float64, len(bounds))
	for i, b := range bounds {
		scaled[i] = b * per
	}
	p.ExplicitBounds().FromRaw(scaled)
	p.BucketCounts().FromRaw(counts)
	p.SetCount(uint64(len(steps)))
	p.SetSum(sum)
}
