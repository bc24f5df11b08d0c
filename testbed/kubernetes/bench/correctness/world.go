// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package correctness

import (
	"fmt"
	"math"
	"time"
)

type m = map[string]any

// hurry is how many times faster everything goes than with the defaults, so that a
// look-back is over within a phase.
const hurry = 15

// The defaults of the agents, of gpu_summary and of Prometheus, in a hurry.
const (
	cadence    = 15 * time.Second / hurry // of telemetry, of scrapes and of evaluations
	staleness  = 45 * time.Second / hurry
	settling   = 90 * time.Second / hurry // gpu_summary's warmup
	expiry     = 5 * time.Minute / hurry  // gpu_summary's allocation_ttl
	lookBehind = 5 * time.Minute / hurry  // Prometheus' lookback delta
)

const (
	// fleetSettled is when the first pods are, and every contender had time to begin.
	fleetSettled = settling + 2*staleness
	// leastPhase is a look-back and what a contender needs beside it.
	leastPhase = lookBehind + 2*staleness
	// restartPhase is what gpu_summary needs to settle again, and as much beside it.
	restartPhase = 2 * (settling + staleness)
	// loadsModel is for how long a new pod does nothing.
	loadsModel = settling - cadence
	// partialAbove is gpu_summary's default.
	partialAbove = 0.25
	// late is by how much batches are, and retryAfter when they come once more.
	late       = 3 * cadence / 2
	retryAfter = 3 * cadence
)

// span is a time, from its begin until before its end; times are since the begin
// of the run.
type span struct{ from, to time.Duration }

const ever = time.Duration(math.MaxInt64)

func (s span) has(t time.Duration) bool { return s.from <= t && t < s.to }

// level is a utilization from a time on.
type level struct {
	from  time.Duration
	value float64
}

// gpuDevice is a GPU and what becomes of it.
type gpuDevice struct {
	load   []level // by time, the first from ever
	silent span    // nothing is seen of it
	blank  span    // its value is DCGM's word for none
}

func (g *gpuDevice) utilization(t time.Duration) (value float64) {
	for _, l := range g.load {
		if t >= l.from {
			value = l.value
		}
	}
	return value
}

// readable reports whether a reading of it can be had.
func (g *gpuDevice) readable(t time.Duration) bool { return !g.silent.has(t) && !g.blank.has(t) }

// gpuPod is a pod with a node and an agent of its own.
type gpuPod struct {
	name, service string
	life          span
	lost          bool // at its end its node is lost, and its end is not reported
	late          span // its batches come late, and once more
	gpus          []gpuDevice
}

// settledAt reports whether it exists for long enough.
func (p *gpuPod) settledAt(t time.Duration) bool {
	return p.life.has(t) && (p.life.from == 0 || t-p.life.from >= settling)
}

// value is the mean over those of its devices that can be read.
func (p *gpuPod) value(t time.Duration) (mean float64, readable bool) {
	sum, n := 0.0, 0
	for i := range p.gpus {
		if g := &p.gpus[i]; g.readable(t) {
			sum, n = sum+g.utilization(t), n+1
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

// phase is the time in which a service has to do with a fault, from the moment at
// which it begins.
type phase struct {
	fault string
	span
	pushed bool // a fault of what is sent: there is none for who scrapes
}

// gpuService is a service and what happens to it.
type gpuService struct {
	name   string
	pods   []*gpuPod
	phases []phase
}

// truth is the mean over its settled pods, each with one vote; there is none while
// none can be read.
func (s *gpuService) truth(t time.Duration) (mean float64, there bool) {
	sum, n := 0.0, 0
	for _, p := range s.pods {
		if v, readable := p.value(t); readable && p.settledAt(t) {
			sum, n = sum+v, n+1
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

// partial reports whether more of its settled pods are silent than may be.
func (s *gpuService) partial(t time.Duration) bool {
	missing, all := 0.0, 0.0
	for _, p := range s.pods {
		if p.settledAt(t) {
			all++
			if _, readable := p.value(t); !readable {
				missing++
			}
		}
	}
	return all > 0 && missing/all > partialAbove
}

// phaseAt is where it stands.
func (s *gpuService) phaseAt(t time.Duration) (phase, bool) {
	for _, p := range s.phases {
		if p.has(t) {
			return p, true
		}
	}
	return phase{}, false
}

const restartFault = "receiver killed and started again"

// script is the fleet and what happens to it, in two phases of that length and one
// in which all that receives is killed and started again. Pods that fall silent do
// as the others of their service, and the load changes at that moment: so the truth
// is the same with and without them, and a value that is kept is wrong.
func script(length time.Duration) (services []*gpuService, restart, end time.Duration) {
	first := span{fleetSettled, fleetSettled + length}
	second := span{first.to, first.to + length}
	third := span{second.to, second.to + restartPhase}
	add := func(name string, one, two phase) *gpuService {
		one.span, two.span = first, second
		s := &gpuService{name: name, phases: []phase{one, two}}
		services = append(services, s)
		return s
	}

	step := add("step", phase{fault: "load rises in all 8 pods"},
		phase{fault: fmt.Sprintf("load falls while batches of 4 of 8 pods come %v late and once more %v later", late, retryAfter), pushed: true})
	for i := range 8 {
		p := step.pod(level{0, 0.30}, level{first.from, 0.80}, level{second.from, 0.40})
		if i%2 == 0 {
			p.late = second
		}
	}

	chat := add("chat", phase{fault: "1 of 16 pods falls silent as load falls"}, phase{fault: "the silent pod is back, and load rises"})
	for i := range 16 {
		p := chat.pod(level{0, 0.70}, level{first.from, 0.20}, level{second.from, 0.60})
		if i == 0 {
			p.gpus[0].silent = first
		}
	}

	embed := add("embed", phase{fault: "4 of 12 pods fall silent as load falls"}, phase{fault: "all 12 pods are silent: no number is right"})
	for i := range 12 {
		p := embed.pod(level{0, 0.80}, level{first.from, 0.30})
		p.gpus[0].silent = span{second.from, ever}
		if i < 4 {
			p.gpus[0].silent.from = first.from
		}
	}

	rank := add("rank", phase{fault: "1 of 5 pods is deleted, and its series ended"}, phase{fault: "1 of 4 pods' node is lost, and another pod replaces it"})
	rank.pod(level{0, 0.90}).life.to = first.from
	gone := rank.pod(level{0, 0.80})
	gone.life.to, gone.lost = second.from, true
	for range 3 {
		rank.pod(level{0, 0.30})
	}
	rank.pod(level{0, 0}, level{second.from + loadsModel, 0.30}).life.from = second.from

	scale := add("scale", phase{fault: "4 pods become 8; new ones load their model"}, phase{fault: "1 of 8 GPUs reports DCGM's blank value"})
	for range 4 {
		scale.pod(level{0, 0.85})
	}
	for range 4 {
		scale.pod(level{0, 0}, level{first.from + loadsModel, 0.85}).life.from = first.from
	}
	scale.pods[0].gpus[0].blank = second

	mixed := add("mixed", phase{fault: "no fault; 1 of 4 pods has 2 GPUs"}, phase{fault: "one of those 2 GPUs falls silent as their load falls"})
	two := mixed.pod(level{0, 0.90}, level{second.from, 0.40})
	two.gpus = append(two.gpus, two.gpus[0])
	two.gpus[1].silent = second
	for range 3 {
		mixed.pod(level{0, 0.30})
	}

	for _, s := range []*gpuService{step, chat, rank} { // they have no other fault then
		s.phases = append(s.phases, phase{fault: restartFault, span: third})
	}
	return services, third.from, third.to
}

// pod adds one with one device.
func (s *gpuService) pod(load ...level) *gpuPod {
	p := &gpuPod{name: fmt.Sprintf("%s-%02d", s.name, len(s.pods)), service: s.name, life: span{0, ever}, gpus: []gpuDevice{{load: load}}}
	s.pods = append(s.pods, p)
	return p
}
