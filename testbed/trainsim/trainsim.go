// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package trainsim simulates training jobs: what they send over OTLP, in the vocabulary of
// docs/reference/training.md or in those of Megatron-LM and NeMo, the telemetry of their devices,
// and the truth behind it. It shares no code with the product.
package trainsim

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A Dialect is the vocabulary that a job speaks.
type Dialect string

// The dialects.
const (
	Contract Dialect = "contract" // training.*
	Megatron Dialect = "megatron" // megatron.training.*: milliseconds, and no tokens
	NeMo     Dialect = "nemo"     // nv.dl.*: tokens alone
)

// Model is what a job states of its model; a figure that is 0 is not stated.
type Model struct {
	Parameters, Layers, Attention, Sequence int64
	FLOPs                                   float64 // of a token, in place of the four
}

// Device is a GPU that the job has, or an instance of Parent.
type Device struct{ ID, Model, Parent string }

// Step is one optimizer step.
type Step struct {
	Number   int64
	End      time.Time
	Duration time.Duration
	Wait     time.Duration // for input
	Tokens   int64         // of the global batch
	Loss     float64       // may not be finite
}

// Life is one process of a run, from its start to its end or the next.
type Life struct {
	Start time.Time
	Steps []Step // by End
}

// Run is a training run.
type Run struct {
	ID        string
	Identity  map[string]string // attributes of the resource of the job and of its devices
	Precision string
	Dialect   Dialect
	Model     Model
	Devices   []Device
	Lives     []Life
	Skew      func(time.Time) time.Duration // of the job's clock; nil is none
}

// bounds are those that the reference recommends, in seconds.
var bounds = []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 120, 300, 600}

// Totals are sums over steps.
type Totals struct {
	Steps, Tokens, NotFinite int64
	Step, Wait               time.Duration
}

// Life is the process that runs at a time, or nil before the first.
func (r *Run) Life(at time.Time) (life *Life) {
	for i := range r.Lives {
		if !r.Lives[i].Start.After(at) {
			life = &r.Lives[i]
		}
	}
	return life
}

// Totals are those of all steps that ended after from and not after to, of any process.
func (r *Run) Totals(from, to time.Time) (t Totals) {
	for i := range r.Lives {
		for _, s := range r.Lives[i].Steps {
			if s.End.After(from) && !s.End.After(to) {
				t.add(s)
			}
		}
	}
	return t
}

func (t *Totals) add(s Step) {
	t.Steps++
	t.Tokens += s.Tokens
	t.Step += s.Duration
	t.Wait += s.Wait
	if !finite(s.Loss) {
		t.NotFinite++
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Lost are the steps that restarts until then threw away, and Restarts how many there were.
func (r *Run) Lost(at time.Time) (lost, restarts int64) {
	highest := int64(math.MinInt64)
	for i := range r.Lives {
		if r.Lives[i].Start.After(at) {
			break
		}
		if i > 0 {
			restarts++
		}
		for j, s := range r.Lives[i].Steps {
			if s.End.After(at) {
				break
			}
			if j == 0 && highest >= s.Number {
				lost += highest - s.Number + 1
			}
			highest = max(highest, s.Number)
		}
	}
	return lost, restarts
}

// PerToken are the operations of a token: 6 N + 6 L A T, or what the job states; 0 is not known.
func (m Model) PerToken() float64 {
	if m.FLOPs > 0 {
		return m.FLOPs
	}
	if m.Parameters == 0 || m.Layers == 0 || m.Attention == 0 || m.Sequence == 0 {
		return 0
	}
	return 6*float64(m.Parameters) + 6*float64(m.Layers)*float64(m.Attention)*float64(m.Sequence)
}

// Export is what the job's SDK sends at a time: cumulative figures of the process that runs, in
// its dialect and by its clock. It is empty before the first start.
func (r *Run) Export(at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	life := r.Life(at)
	if life == nil {
		return md
	}
	rm := md.ResourceMetrics().AppendEmpty()
	r.describe(rm.Resource())
	rm.Resource().Attributes().PutStr("training.run.id", r.ID)
	if r.Precision != "" {
		rm.Resource().Attributes().PutStr("training.precision", r.Precision)
	}
	w := writer{rm.ScopeMetrics().AppendEmpty().Metrics(), r.clock(life.Start), r.clock(at)}
	var done []Step
	for _, s := range life.Steps {
		if !s.End.After(at) {
			done = append(done, s)
		}
	}
	switch r.Dialect {
	case Megatron:
		w.megatron(done)
	case NeMo:
		w.nemo(done)
	default:
		w.contract(done, r.Model)
	}
	return md
}

func (r *Run) describe(resource pcommon.Resource) {
	for k, v := range r.Identity {
		resource.Attributes().PutStr(k, v)
	}
}

func (r *Run) clock(at time.Time) pcommon.Timestamp {
	if r.Skew != nil {
		at = at.Add(r.Skew(at))
	}
	return pcommon.NewTimestampFromTime(at)
}

// Held is the telemetry of the run's devices at a time, as gpu_pod passes it on: each of them held
// whole.
func (r *Run) Held(at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for _, d := range r.Devices {
		rm := md.ResourceMetrics().AppendEmpty()
		r.describe(rm.Resource())
		rm.Resource().Attributes().PutStr("hw.id", d.ID)
		if d.Model != "" {
			rm.Resource().Attributes().PutStr("hw.model", d.Model)
		}
		if d.Parent != "" {
			rm.Resource().Attributes().PutStr("hw.parent", d.Parent)
		}
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("gpu.allocation")
		m.SetUnit("1")
		sum := m.SetEmptySum()
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p := sum.DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		p.SetDoubleValue(1)
	}
	return md
}
