// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package trainsim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Fault is what is odd about a random run.
type Fault string

// The faults. PerRank has every rank send the tokens of all, so that they are counted once a device.
const (
	Honest       Fault = "honest"
	Mixed        Fault = "mixed models"
	Unknown      Fault = "unknown model"
	Instances    Fault = "MIG instances"
	NoPrecision  Fault = "no precision"
	FP8          Fault = "fp8"
	NoParameters Fault = "no parameters"
	PerRank      Fault = "tokens of each rank"
)

// Faults are all of them.
var Faults = []Fault{Honest, Mixed, Unknown, Instances, NoPrecision, FP8, NoParameters, PerRank}

// models are devices as exporters name them, with their dense peak in bf16.
var models = []struct {
	name string
	peak float64
}{{"NVIDIA H100 80GB HBM3", 989e12}, {"NVIDIA A100-SXM4-80GB", 312e12}, {"NVIDIA H200", 989e12}, {"NVIDIA L40S", 362e12}}

// Random is a run with its truth: of one fault, in the contract's vocabulary, with restarts that
// repeat steps, losses that are not finite, and sometimes a clock that jumps. Peak is the sum over
// its devices in operations a second, 0 where it cannot be known.
func Random(rng *rand.Rand, fault Fault, start time.Time) (run *Run, peak float64) {
	id := fmt.Sprintf("%016x", rng.Uint64())
	run = &Run{
		ID: "run-" + id, Precision: "bf16", Dialect: Contract,
		Identity: map[string]string{"k8s.cluster.name": "sim", "k8s.namespace.name": "ml", "service.name": "train-" + id[:8]},
		Model:    Model{Parameters: 1e9 + rng.Int64N(70e9), Layers: 16 + rng.Int64N(64), Attention: 2048 * (1 + rng.Int64N(8)), Sequence: 2048 << rng.IntN(4)},
	}
	if rng.IntN(4) == 0 {
		run.Model = Model{FLOPs: 1e10 + rng.Float64()*1e12}
	}
	model := rng.IntN(len(models))
	count := 1 << rng.IntN(7)
	if fault == Mixed || fault == PerRank {
		count = max(count, 8)
	}
	for i := range count {
		d := Device{ID: fmt.Sprintf("GPU-%s-%04d", id, i), Model: models[model].name}
		switch fault {
		case Mixed:
			d.Model = models[(model+i%2)%len(models)].name
		case Unknown:
			d.Model = "NVIDIA Imaginary 9000"
		case Instances:
			d.Parent, d.ID = d.ID, d.ID+"/1"
		}
		run.Devices = append(run.Devices, d)
	}
	peak = float64(count) * models[model].peak
	if fault != Honest && fault != PerRank {
		peak = 0
	}
	switch fault {
	case NoPrecision:
		run.Precision = ""
	case FP8:
		run.Precision = "fp8"
	case NoParameters:
		run.Model = Model{Layers: 32, Attention: 8192, Sequence: 8192}
	}

	mean := time.Duration(float64(time.Second) * math.Exp(rng.Float64()*3-1)) // 0.4 s to 7 s
	flops := Model.PerToken(run.Model)
	if flops == 0 {
		flops = 1e11
	}
	mfu := 0.05 + 0.55*rng.Float64()
	tokens := max(1, int64(mfu*float64(count)*models[model].peak*mean.Seconds()/flops))
	if fault == PerRank {
		tokens = int64(float64(tokens) / mfu * 0.3 * float64(count))
	}
	first, now := int64(0), start
	for range 1 + rng.IntN(3) {
		life := Life{Start: now}
		now = now.Add(time.Duration(5+rng.IntN(60)) * time.Second) // init, compile, restore
		for n := first + 1; n <= first+20+rng.Int64N(400); n++ {
			s := Step{Number: n, Duration: time.Duration(float64(mean) * (0.9 + 0.2*rng.Float64())), Tokens: tokens, Loss: 2 + 8/float64(n)}
			s.Wait = time.Duration(float64(s.Duration) * 0.3 * rng.Float64())
			if rng.IntN(200) == 0 {
				s.Loss = math.NaN()
			}
			now = now.Add(s.Duration)
			s.End = now
			life.Steps = append(life.Steps, s)
			if rng.IntN(100) == 0 {
				now = now.Add(time.Duration(rng.IntN(30)) * time.Second) // a checkpoint, an evaluation
			}
		}
		first = max(0, life.Steps[len(life.Steps)-1].Number-rng.Int64N(50))
		run.Lives = append(run.Lives, life)
		now = now.Add(time.Duration(rng.IntN(90)) * time.Second)
	}
	if rng.IntN(5) == 0 {
		at, by := start.Add(time.Duration(rng.Int64N(int64(now.Sub(start))))), time.Duration(rng.IntN(7200)-3600)*time.Second
		run.Skew = func(t time.Time) time.Duration {
			if t.Before(at) {
				return 0
			}
			return by
		}
	}
	return run, peak
}

// End is when the last step of the run ended.
func (r *Run) End() (end time.Time) {
	for i := range r.Lives {
		for _, s := range r.Lives[i].Steps {
			end = s.End
		}
	}
	return end
}
