// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/internal/places"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/pending"
)

// why is what pods that wait for the same reason have in common.
type why struct {
	places.Place
	pending.Reason
}

// wait adds the pods that have no node. The devices of a claim count once, for the first pod
// by name, and not at all where a pod on a node has them.
func (e *Evaluator) wait(now time.Time, waiting []*gpupods.Pod, held map[claim]bool, f *Figures) {
	type row struct {
		why
		resource string
	}
	slices.SortFunc(waiting, func(a, b *gpupods.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	rows, oldest := map[row]*Waiting{}, map[why]time.Duration{}
	for _, p := range waiting {
		s := p.Scheduling
		if len(s.Requests) == 0 {
			continue // what it asks for is not known
		}
		is := why{
			e.cfg.Places.Admit(places.Place{Namespace: p.Namespace, Queue: s.Queue}, now),
			pending.Of(s.Reason, s.Message, e.cfg.IsDevice),
		}
		if age := now.Sub(s.Created); age < 0 {
			f.Negative++
		} else {
			oldest[is] = max(oldest[is], age)
		}
		for i, r := range s.Requests {
			at := row{is, r.Resource}
			w := rows[at]
			if w == nil {
				w = &Waiting{Place: is.Place, Reason: is.Reason, Resource: r.Resource}
				rows[at] = w
			}
			if !slices.ContainsFunc(s.Requests[:i], func(before gpupods.Request) bool { return before.Resource == r.Resource }) {
				w.Pods++
			}
			if r.Claim != "" {
				shared := claim{p.Namespace, r.Claim, r.Resource}
				if held[shared] {
					continue
				}
				held[shared] = true
			}
			w.Devices += r.Count
		}
	}
	for _, w := range rows {
		f.Waiting = append(f.Waiting, *w)
	}
	for is, age := range oldest {
		f.Oldest = append(f.Oldest, Oldest{is.Place, is.Reason, age})
	}
}
