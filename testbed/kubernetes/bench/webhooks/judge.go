// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"math"
	"time"
)

// arrival is a notice in a request that a receiver has read: one for each notice
// that was in it.
type arrival struct {
	hook, id string
	at       time.Time
	status   int // the answer; 0 where there was none
}

// receipt is what a notifier's log reports of a notice on its way to a receiver.
type receipt struct {
	hook, id string
	attempt  bool // of an attempt; else of what was never attempted
	status   int  // the answer; 0 where it had none
	gaveUp   bool // it was the last, and no success
	waits    bool // another one was still to come at the end
}

// verdict is what became of all pairs of a notice and a receiver.
type verdict struct {
	pairs, delivered, duplicates int
	waiting, lost                int // neither delivered nor given up
	attempts, proved             int
	waits                        []float64 // ms until the first delivery to receivers that are well
}

// judge compares what was handed over with what arrived and with what a log
// reports. handed are the times of what was acknowledged, by id.
func judge(handed map[string]time.Time, hooks []string, well map[string]bool, arrivals []arrival, receipts []receipt) (v verdict) {
	type pair struct{ hook, id string }
	taken := map[pair]int{}
	first := map[pair]time.Time{}
	unproved := map[pair][]int{} // the answers of attempts
	for _, a := range arrivals {
		p := pair{a.hook, a.id}
		v.attempts++
		unproved[p] = append(unproved[p], a.status)
		if a.status/100 != 2 {
			continue
		}
		taken[p]++
		if t, ok := first[p]; !ok || a.at.Before(t) {
			first[p] = a.at
		}
	}
	// A record with an answer proves an attempt that was so answered. One without
	// (it was cut off) may be of any that is left: the sender may have died before
	// it read the answer.
	gaveUp, waits := map[pair]bool{}, map[pair]bool{}
	spare := map[pair]int{}
	for _, r := range receipts {
		p := pair{r.hook, r.id}
		gaveUp[p] = gaveUp[p] || r.gaveUp
		waits[p] = waits[p] || r.waits
		if !r.attempt {
			continue
		}
		if r.status == 0 {
			spare[p]++
			continue
		}
		for i, status := range unproved[p] {
			if status == r.status {
				unproved[p] = append(unproved[p][:i:i], unproved[p][i+1:]...)
				v.proved++
				break
			}
		}
	}
	for p, n := range spare {
		v.proved += min(n, len(unproved[p]))
	}
	for id, at := range handed {
		for _, hook := range hooks {
			p := pair{hook, id}
			v.pairs++
			switch {
			case taken[p] > 0:
				v.delivered++
				v.duplicates += taken[p] - 1
				if well[hook] {
					v.waits = append(v.waits, float64(first[p].Sub(at).Microseconds())/1000)
				}
			case gaveUp[p]:
			case waits[p]:
				v.waiting++
			default:
				v.lost++
			}
		}
	}
	return v
}

// quantile of sorted values; NaN of none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[int(q*float64(len(sorted)-1))]
}
