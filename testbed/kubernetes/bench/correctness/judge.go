// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package correctness

import (
	"math"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

// tolerance is how far a right answer may be from the truth.
const tolerance = 0.005

// answer is what a contender reports about a service: nothing, a mean, and perhaps
// whether it is partial.
type answer struct {
	mean    float64
	there   bool
	partial bool
}

// ruling is what an answer is.
type ruling uint8

const (
	right ruling = iota
	wrong
	mute // there is a truth, and no answer
)

// judgeMean compares an answer with the truth.
func judgeMean(truth float64, there bool, a answer) ruling {
	switch {
	case !a.there && !there:
		return right
	case !a.there:
		return mute
	case !there || !(math.Abs(a.mean-truth) <= tolerance): // turned round: NaN is no answer that is right
		return wrong
	default:
		return right
	}
}

// tally counts the verdicts on a contender's answers.
type tally struct {
	verdicts [3]int
	off      float64 // the sum of the errors, each 0 to 1 …
	measured int     // … of so many answers
	partial  [2]struct{ asked, reported int }
}

// add judges one answer.
func (t *tally) add(truth float64, there, partial bool, a answer) {
	t.verdicts[judgeMean(truth, there, a)]++
	if there && a.there {
		off := math.Abs(a.mean - truth)
		if math.IsNaN(off) || off > 1 {
			off = 1
		}
		t.off, t.measured = t.off+off, t.measured+1
	}
	p := &t.partial[0]
	if partial {
		p = &t.partial[1]
	}
	p.asked++
	if a.partial {
		p.reported++
	}
}

func (t *tally) asked() int { return t.verdicts[right] + t.verdicts[wrong] + t.verdicts[mute] }

// share is a part of 100; NaN, which is no figure, where there is nothing.
func share(part, all int) float64 { return 100 * float64(part) / float64(all) }

// protocol is what was judged: by fault, and there by contender.
type protocol struct {
	faults  []string // as they came
	lengths map[string]time.Duration
	tallies map[string]map[string]*tally
}

func newProtocol() *protocol {
	return &protocol{lengths: map[string]time.Duration{}, tallies: map[string]map[string]*tally{}}
}

// add judges what one contender reported at a moment about a service.
func (p *protocol) add(s *gpuService, t time.Duration, contender string, a answer) {
	ph, ok := s.phaseAt(t)
	if !ok {
		return
	}
	of := p.tallies[ph.fault]
	if of == nil {
		of = map[string]*tally{}
		p.faults, p.tallies[ph.fault], p.lengths[ph.fault] = append(p.faults, ph.fault), of, ph.to-ph.from
	}
	if of[contender] == nil {
		of[contender] = &tally{}
	}
	mean, there := s.truth(t)
	of[contender].add(mean, there, s.partial(t), a)
}

// Rows are a contender a column. Those without a partial state have no figure for it.
func (p *protocol) rows(contenders []string, reportsPartial map[string]bool) []frame.Named {
	var out []frame.Named
	add := func(name string, figure func(contender string) float64) {
		f := frame.Figures{}
		for _, c := range contenders {
			f[c] = figure(c)
		}
		out = append(out, frame.Named{Row: name, Figures: f})
	}
	for i, name := range []string{"right, % of answers", "wrong, %", "no answer though there is one, %"} {
		add("**All faults alike**: "+name, func(c string) float64 {
			sum, n := 0.0, 0.0
			for _, of := range p.tallies {
				if t := of[c]; t != nil {
					sum, n = sum+share(t.verdicts[i], t.asked()), n+1
				}
			}
			return sum / n
		})
	}
	for i, name := range []string{"reports partial while it is not, % of answers", "reports partial while it is, %"} {
		add("**All faults**: "+name, func(c string) float64 {
			asked, reported := 0, 0
			for _, of := range p.tallies {
				if t := of[c]; t != nil && reportsPartial[c] {
					asked, reported = asked+t.partial[i].asked, reported+t.partial[i].reported
				}
			}
			return share(reported, asked)
		})
	}
	for _, fault := range p.faults {
		of, length := p.tallies[fault], p.lengths[fault]
		add("**Not right for, s**: "+fault, func(c string) float64 {
			if of[c] == nil {
				return math.NaN()
			}
			return length.Seconds() * (1 - share(of[c].verdicts[right], of[c].asked())/100)
		})
	}
	for _, fault := range p.faults {
		of := p.tallies[fault]
		if !slices.ContainsFunc(contenders, func(c string) bool { return of[c] != nil && of[c].measured > 0 }) {
			continue
		}
		add("**Off by, points**: "+fault, func(c string) float64 {
			if of[c] == nil {
				return math.NaN()
			}
			return 100 * of[c].off / float64(of[c].measured) // NaN where there is nothing
		})
	}
	return out
}
