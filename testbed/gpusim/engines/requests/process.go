// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/random"
)

const (
	never     = time.Duration(math.MaxInt64)
	keepFor   = time.Hour   // how long an ended request is kept
	foldEvery = time.Minute // how often older ones become totals
)

// Process is one engine and its traffic. Its time moves forward only, by Advance. It
// is not safe for use by several goroutines.
type Process struct {
	cfg    Config
	bounds func(Limits) Bounds
	load   func(second int64) float64
	draws  random.Source // of arrivals and lengths
	pace   uint64        // stream of what a step draws

	now      time.Duration
	up       time.Duration // when it serves (again)
	started  time.Duration // the process, which may load one model after the other
	asleep   bool
	arrivals arrivals
	waiting  []*Request
	running  []*Request
	leaving  []*Request // who may lose patience, soonest first
	patience map[*Request]time.Duration
	used     int // blocks
	step     *step

	life   *life            // since the engine's start
	ever   map[string]*life // by model, since the beginning: what a gateway knows
	models []string         // that have been served, in that order
	kept   []*Request       // in the order of arrival
	total  Totals
	folds  time.Duration // when requests were folded last
}

// New builds an engine that serves from begin on, in a fleet with times that start at 0.
// load is the part of the rate that arrives in a second of the fleet. bounds are those
// in which figures are counted, for an engine of such limits; nil counts sums alone.
func New(cfg Config, seed uint64, begin time.Duration, load func(second int64) float64, bounds func(Limits) Bounds) (*Process, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if bounds == nil {
		bounds = func(Limits) Bounds { return nil }
	}
	p := &Process{
		cfg: cfg, bounds: bounds, load: load, draws: random.NewSource(random.Mix(seed)), pace: random.Mix(seed + 1),
		now: begin, up: begin, started: begin, folds: begin, patience: map[*Request]time.Duration{}, ever: map[string]*life{},
	}
	p.begins()
	p.arrivals = arrivals{second: int64(begin / time.Second), offset: (begin % time.Second).Seconds(), left: p.draws.Exp()}
	return p, nil
}

// Now is how far the process has come.
func (p *Process) Now() time.Duration { return p.now }

// Advance does everything up to and at a time. A time that has been is ignored.
func (p *Process) Advance(to time.Duration) {
	for {
		at, happen := p.next(to)
		if happen == nil {
			break
		}
		p.now = at
		happen()
		p.begin()
	}
	p.now = max(p.now, to)
	if p.now-p.folds >= foldEvery {
		p.fold()
	}
}

// next is what happens next, not later than a time: of two things at once, the step
// ends first.
func (p *Process) next(to time.Duration) (time.Duration, func()) {
	at, happen := to+1, func() {}
	if p.step != nil && p.step.end < at {
		at, happen = p.step.end, p.finishStep
	}
	for len(p.leaving) > 0 && p.leaving[0].Reason != Active {
		delete(p.patience, p.leaving[0])
		p.leaving = p.leaving[1:]
	}
	if len(p.leaving) > 0 && p.patience[p.leaving[0]] < at {
		r := p.leaving[0]
		at, happen = p.patience[r], func() { p.end(r, Abort) }
	}
	if arrival, ok := p.arrivals.next(to, &p.draws, p.rate); ok && arrival < at {
		at, happen = arrival, p.arrive
	}
	if at > to {
		return 0, nil
	}
	return max(at, p.now), happen
}

func (p *Process) rate(second int64) float64 { return p.cfg.Rate * max(p.load(second), 0) }

// arrivals are a Poisson process with a rate that changes with every second.
type arrivals struct {
	second int64
	offset float64       // of the second, 0 to 1: what is drawn already
	left   float64       // of the exponential number until the next one
	at     time.Duration // the next one, once it is found
	found  bool
}

// next looks no further than the second of a limit.
func (a *arrivals) next(limit time.Duration, draws *random.Source, rate func(second int64) float64) (time.Duration, bool) {
	for !a.found {
		if time.Duration(a.second)*time.Second > limit {
			return 0, false
		}
		here := rate(a.second)
		if here > 0 && a.left < here*(1-a.offset) {
			a.offset += a.left / here
			a.at = time.Duration(a.second)*time.Second + time.Duration(a.offset*1e6)*time.Microsecond
			a.left, a.found = draws.Exp(), true
			break
		}
		a.left -= here * (1 - a.offset)
		a.second, a.offset = a.second+1, 0
	}
	return a.at, a.at <= limit
}

// arrive lets a request in, unless nothing serves.
func (p *Process) arrive() {
	p.arrivals.found = false
	r := p.draw()
	if p.now < p.up {
		return
	}
	r.Arrival = p.now
	p.kept = append(p.kept, r)
	p.count(func(l *life) { l.Arrived++ })
	if len(p.waiting) >= p.cfg.Queue {
		p.end(r, Overloaded)
		return
	}
	r.enqueue(p.now)
	p.waiting = append(p.waiting, r)
	if patience, ok := p.patience[r]; ok {
		leaves := p.now + patience
		p.patience[r] = leaves
		i, _ := slices.BinarySearchFunc(p.leaving, leaves, func(o *Request, t time.Duration) int { return cmp.Compare(p.patience[o], t) })
		p.leaving = slices.Insert(p.leaving, i, r)
	}
}

// draw makes a request. It draws the same number of numbers for each, so that what
// becomes of one changes no other.
func (p *Process) draw() *Request {
	d := &p.draws
	r := &Request{Model: p.cfg.Model, Scheduled: -1, End: -1}
	most := p.cfg.Context / 2
	r.Prompt = length(p.cfg.Prompt, d.Normal(), 4, most)
	r.target = length(p.cfg.Output, d.Normal(), 2, most)
	r.most = most
	if d.Float64() < .3 {
		r.most = r.target
	}
	hit, part := d.Float64(), d.Float64()
	if hit < p.cfg.PrefixHits {
		r.Cached = int(part*float64(r.Prompt-1)) / p.cfg.BlockSize * p.cfg.BlockSize
	}
	fails, where := d.Float64(), d.Float64()
	if fails < p.cfg.Errors {
		r.fails = 1 + int(where*float64(r.target))
	}
	leaves, patience := d.Float64(), d.Exp()
	if leaves < p.cfg.Aborts && p.now >= p.up {
		p.patience[r] = time.Duration(patience*1.5e6) * time.Microsecond
	}
	if which := int(d.Float64() * float64(2*len(p.cfg.Adapters))); which < len(p.cfg.Adapters) {
		r.Adapter = p.cfg.Adapters[which]
	}
	return r
}

// length is log-normal with a mean.
func length(mean int, normal float64, least, most int) int {
	const sigma = .7
	v := float64(mean) * math.Exp(sigma*normal-sigma*sigma/2)
	return min(max(int(v), least), most)
}

// end ends a request now.
func (p *Process) end(r *Request, why Reason) {
	r.End, r.Reason = p.now, why
	if len(r.waits) > 0 {
		r.dequeue(p.now)
	}
	if i := slices.Index(p.waiting, r); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
	if i := slices.Index(p.running, r); i >= 0 {
		p.running = slices.Delete(p.running, i, i+1)
	}
	p.used -= r.held
	r.held = 0
	p.count(func(l *life) { l.finished(r) })
}

// Stop ends the engine now: what it was doing is lost, and clients find no one until
// Start.
func (p *Process) Stop() {
	p.lose()
	p.up = never
}

// Start lets the engine serve from now on, counting from zero.
func (p *Process) Start() {
	p.up, p.started = p.now, p.now
	p.begins()
}

// Swap loads another model into the same process: what the engine was doing is lost,
// and it counts from zero.
func (p *Process) Swap(model string) {
	p.lose()
	p.cfg.Model = model
	p.begins()
}

// begins is a new life, which what stands before the engine does not notice.
func (p *Process) begins() {
	bounds := p.bounds(p.cfg.limits())
	p.life = newLife(p.now, bounds)
	if p.ever[p.cfg.Model] == nil {
		p.ever[p.cfg.Model] = newLife(p.now, bounds)
		p.models = append(p.models, p.cfg.Model)
	}
}

// count counts something for the engine and for what stands before it.
func (p *Process) count(do func(l *life)) {
	do(p.life)
	do(p.ever[p.cfg.Model])
}

func (p *Process) lose() {
	for _, r := range slices.Concat(p.running, p.waiting) {
		p.end(r, Stopped)
	}
	p.step, p.asleep = nil, false
}

// Sleep stops or resumes the work: requests arrive and wait meanwhile.
func (p *Process) Sleep(asleep bool) {
	p.asleep = asleep
	p.begin()
}

// fold turns requests that ended long ago into totals.
func (p *Process) fold() {
	p.folds = p.now
	p.kept = slices.DeleteFunc(p.kept, func(r *Request) bool {
		old := r.Reason != Active && r.End < p.now-keepFor
		if old {
			p.total.add(r, -1, p.now)
		}
		return old
	})
}

// Requests are those kept, in the order of arrival: all of the last hour.
func (p *Process) Requests() []*Request { return p.kept }
