// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/random"
)

// What a step takes: an 8B model on a current board.
const (
	stepBase    = 9000 * time.Microsecond
	stepRequest = 180 * time.Microsecond
	stepPrompt  = 45 * time.Microsecond // a token to prefill
	stepTokens  = 4096                  // to prefill in one step, unless one prompt has more
)

// step is one forward pass: every request of it gets a token, or several that were
// proposed and accepted.
type step struct {
	batch     []*Request
	prefilled int
	begin     time.Duration
	end       time.Duration
}

func (p *Process) blocks(tokens int) int { return (tokens + p.cfg.BlockSize - 1) / p.cfg.BlockSize }

// begin starts a step if there is something to do.
func (p *Process) begin() {
	if p.step != nil || p.asleep || p.now < p.up {
		return
	}
	p.grow()
	prefill := p.admit()
	if len(p.running) == 0 {
		return
	}
	d := stepBase + time.Duration(len(p.running))*stepRequest + time.Duration(prefill)*stepPrompt
	d += time.Duration(.05 * float64(d) * random.Noise(p.pace, int64(p.now)))
	p.step = &step{batch: slices.Clone(p.running), prefilled: prefill, begin: p.now, end: p.now + d.Truncate(time.Microsecond)}
}

// grow takes the blocks that the running requests need for their next tokens. Where
// there are none left, the request that came last gives its own back and waits again.
func (p *Process) grow() {
	for i := 0; i < len(p.running); i++ {
		r := p.running[i]
		need := p.blocks(r.Prompt+r.Output()+1+p.cfg.Drafts) - r.held
		for need > 0 && p.used+need > p.cfg.Blocks {
			last := p.running[len(p.running)-1]
			p.preempt(last)
			if last == r {
				return
			}
		}
		if need > 0 {
			r.held += need
			p.used += need
		}
	}
}

func (p *Process) preempt(r *Request) {
	p.running = p.running[:len(p.running)-1]
	p.used -= r.held
	r.held = 0
	r.Preemptions++
	p.count(func(l *life) { l.Preemptions++ })
	r.enqueue(p.now)
	p.waiting = slices.Insert(p.waiting, 0, r)
}

// admit takes requests from the queue while there are slots and blocks, and returns how
// many tokens are to be prefilled.
func (p *Process) admit() int {
	prefill := 0
	for len(p.waiting) > 0 && len(p.running) < p.cfg.Slots {
		r := p.waiting[0]
		need := p.blocks(r.Prompt + r.Output() + 1 + p.cfg.Drafts)
		compute := r.Prompt - r.Cached + r.Output()
		if p.used+need > p.cfg.Blocks || prefill > 0 && prefill+compute > stepTokens {
			break
		}
		p.waiting = p.waiting[1:]
		r.dequeue(p.now)
		p.used += need
		r.held, r.fresh = need, true
		prefill += compute
		p.running = append(p.running, r)
		if r.Scheduled < 0 {
			r.Scheduled = p.now
			p.scheduled(r)
		}
	}
	return prefill
}

// scheduled counts a request that left the queue for the first time.
func (p *Process) scheduled(r *Request) {
	p.count(func(l *life) {
		l.Started++
		l.QueriedTokens += r.Prompt
		l.HitTokens += r.Cached
		l.QueriedBlocks += r.Prompt / p.cfg.BlockSize
		l.HitBlocks += r.Cached / p.cfg.BlockSize
		l.observe(QueueTimeAtStart, (r.Scheduled - r.Arrival).Seconds())
	})
}

// finishStep gives every request of the step what it has made.
func (p *Process) finishStep() {
	s := p.step
	p.step = nil
	made := 0
	for i, r := range s.batch {
		if r.Reason != Active {
			continue // it left meanwhile
		}
		n := min(1+p.accepted(r, i), r.target-r.Output())
		if r.fails > 0 && r.Output()+n >= r.fails {
			p.end(r, Error)
			continue
		}
		before, first := r.last, r.Output() == 0
		r.emit(p.now, n)
		r.Skipped += n - 1
		r.fresh = false
		made += n
		p.count(func(l *life) {
			l.OutputTokens += n
			if first {
				l.FirstTokens++
				l.InputTokens += r.Prompt
				l.CachedInput += r.Cached
				l.observe(FirstToken, (p.now - r.Arrival).Seconds())
				return
			}
			for range n {
				l.observe(InterToken, (p.now-before).Seconds()/float64(n))
			}
		})
		if r.Output() >= r.target {
			why := Stop
			if r.target == r.most {
				why = Length
			}
			p.end(r, why)
		}
	}
	if len(p.cfg.Adapters) > 0 {
		p.life.mixes = mix(p.life.mixes, Mix{adapters(p.running), adapters(p.waiting), p.now})
	}
	p.count(func(l *life) {
		l.Steps++
		l.Batches += len(s.batch)
		l.observe(StepTokens, float64(s.prefilled+made))
		l.observe(StepBatch, float64(len(s.batch)))
		l.observe(StepSeconds, (s.end - s.begin).Seconds())
	})
}

// accepted is how many of the tokens proposed for a request were right.
func (p *Process) accepted(r *Request, place int) int {
	if r.fresh || p.cfg.Drafts == 0 {
		return 0
	}
	n := 0
	for n < p.cfg.Drafts && random.Unit(random.Mix(p.pace+uint64(p.now)+uint64(place)<<48+uint64(n)<<56)) < p.cfg.Accepted {
		n++
	}
	p.count(func(l *life) {
		l.Drafts++
		l.DraftTokens += p.cfg.Drafts
		l.AcceptedTokens += n
	})
	return n
}
