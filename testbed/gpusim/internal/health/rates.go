// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "math"

// window counts something by minute.
type window struct {
	minute int64
	sums   [minutes]int
}

func (w *window) add(at int64, n int) {
	if by := at/minute - w.minute; by > 0 {
		var moved [minutes]int
		if by < minutes {
			copy(moved[by:], w.sums[:])
		}
		w.minute, w.sums = at/minute, moved
	}
	w.sums[0] += n
}

func (b *Board) retired(s *Second) {
	for range min(s.Pages, len(b.pages)) {
		b.pages = [2]int64{s.At + 1, b.pages[0]}
	}
	switch {
	case s.AllPages >= 63:
		b.raise(pagesWorn, failed, rma, s.At)
	case s.PagesUncorrected > 15 && b.pages[1] != 0 && s.At+1-b.pages[1] < week:
		b.raise(pagesWorn, predicted, runDiagnostics, s.At)
	}
}

// over reports whether ten minutes with pages have passed since.
func (b *Board) over(since, at int64) bool { return at-max(since, b.gapAt) >= minutes*minute }

// rates judges what is counted a minute.
func (b *Board) rates(s *Second) {
	if s.Recoveries > 0 || s.CRC >= 100 {
		if !b.reasons[nvlinkErrors].on {
			b.linkTimes = [3]int64{s.At + 1, b.linkTimes[0], b.linkTimes[1]}
		}
		a := resetGPU
		if third := b.linkTimes[2]; third != 0 && s.At+1-third < day {
			a = checkMechanics
		}
		b.raise(nvlinkErrors, degraded, a, s.At)
		b.linkAt = s.At
	} else if b.over(b.linkAt, s.At) {
		b.reasons[nvlinkErrors] = active{}
	}

	b.replays.add(s.At, s.Replays)
	limit := math.Ceil(s.Lanes * replaysPerLane[s.Generation-1])
	many := 0
	for _, n := range b.replays.sums {
		if float64(n) > limit {
			many++
		}
	}
	if float64(b.replays.sums[0]) > limit {
		b.replayAt = s.At
	}
	if many >= 5 {
		b.raise(pcieReplays, degraded, checkMechanics, s.At)
	} else if b.over(b.replayAt, s.At) {
		b.reasons[pcieReplays] = active{}
	}

	held := 0
	if s.Throttled {
		held = 1
	}
	b.throttle.add(s.At, held)
	held = 0
	for _, n := range b.throttle.sums {
		held += n
	}
	switch {
	case held >= minutes*minute/2:
		b.raise(throttle, degraded, checkMechanics, s.At)
	case held < minutes*minute/10 && b.over(0, s.At):
		b.reasons[throttle] = active{}
	}
}

// load judges what must last.
func (b *Board) load(s *Second) {
	lasts := func(since *int64, is bool, seconds int64) bool {
		switch {
		case !is:
			*since = 0
		case *since == 0:
			*since = s.At + 1
		}
		return is && s.At+1-*since >= seconds
	}
	if s.Loaded { // without load it says nothing
		if s.Narrow != b.narrow {
			b.narrow, b.loaded = s.Narrow, 0
		}
		if b.loaded++; b.loaded >= linkFor {
			b.flag(pcieWidth, s.Narrow, degraded, checkMechanics, s.At)
		}
	}
	if lasts(&b.hot, s.Hot, hotFor) {
		b.raise(temperature, degraded, checkMechanics, s.At)
	}
	if s.Cool {
		b.reasons[temperature] = active{}
	}
	fails, warns := lasts(&b.fails, s.Fails, page), lasts(&b.warns, s.Warns, page)
	switch {
	case fails:
		b.raise(dcgmWatch, failed, runDiagnostics, s.At)
	case warns:
		b.raise(dcgmWatch, degraded, runDiagnostics, s.At)
	case !s.Fails && !s.Warns:
		b.reasons[dcgmWatch] = active{}
	}
}
