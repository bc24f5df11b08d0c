// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"slices"
	"time"
)

// clockGrain is how much later than its request an attempt may seem to begin:
// records may round times to milliseconds.
const clockGrain = time.Millisecond

// match finds the record of every request of a pair. A record with a
// status needs a request that was so answered; one without (timeout,
// reset, interrupted …) may belong to any request, or to none, because it may
// have ended before the receiver read it. No request comes before its attempt
// began; it may well come after its end, on a busy machine. And what was sent is
// what the record has the digest of. It returns how many requests have no
// record.
func (v *Verdict) match(p pair, a *account) (missing int) {
	requests := slices.Clone(a.requests)
	slices.SortStableFunc(requests, func(a, b Request) int { return a.Arrived.Compare(b.Arrived) })
	var answered, unanswered []Record
	for _, r := range a.records {
		switch {
		case r.Attempt == 0:
		case r.Status != 0:
			answered = append(answered, r)
		default:
			unanswered = append(unanswered, r)
		}
	}
	// The latest record takes the earliest request that fits, which leaves the
	// most to choose from for all others.
	matched := make([]bool, len(requests))
	slices.SortStableFunc(answered, func(a, b Record) int { return b.Time.Compare(a.Time) })
	for _, r := range answered {
		i := 0
		for i < len(requests) && (matched[i] || requests[i].Status != r.Status || !mayBe(requests[i], r)) {
			i++
		}
		if i == len(requests) {
			v.Invented = append(v.Invented, fmt.Sprintf("record %s: %v was answered %d according to the record, but no such request is left", r.ID, p, r.Status))
			continue
		}
		matched[i] = true
	}
	slices.SortStableFunc(unanswered, func(a, b Record) int { return a.Time.Compare(b.Time) })
	for i, q := range requests {
		if matched[i] {
			continue
		}
		if j := slices.IndexFunc(unanswered, func(r Record) bool { return mayBe(q, r) }); j >= 0 {
			unanswered = slices.Delete(unanswered, j, j+1)
			continue
		}
		missing++
		v.Unaudited = append(v.Unaudited, fmt.Sprintf("%v: request at %s, answered %d, has no record", p, q.Arrived.UTC().Format("15:04:05.000"), q.Status))
	}
	return missing
}

// mayBe reports whether the request may be that of the record's attempt.
func mayBe(q Request, r Record) bool {
	return !q.Arrived.Before(r.Time.Add(-clockGrain)) && (q.Body == "" || q.Body == r.Body)
}
