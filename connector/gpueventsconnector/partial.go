// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// partialRule raises gpu.service.partial while a service is partial.
//
// It remembers only which services are raised. A service that was never heard
// of and one that is not partial are the same to it: the first 1 raises, and the
// first 0 does nothing. Without input nothing changes.
type partialRule struct {
	maxSubjects int
	restoredTTL time.Duration
	raised      map[service]struct{}

	// restored are those of raised that come from before a restart and were not
	// heard of since; evaluated is when evaluations were first heard of.
	restored  map[service]struct{}
	evaluated time.Time
}

// change is one service that became partial or ceased to be.
type change struct {
	service service
	raised  bool
	gone    bool // the service itself was forgotten
	unheard bool // it was not heard of since the restart
	at      pcommon.Timestamp
}

func newPartialRule(maxSubjects int, restoredTTL time.Duration) *partialRule {
	return &partialRule{maxSubjects: maxSubjects, restoredTTL: restoredTTL, raised: map[service]struct{}{}}
}

// restore takes over what was raised before a restart.
func (r *partialRule) restore(raised map[service]struct{}) {
	r.raised, r.restored = raised, maps.Clone(raised)
}

// take reads the points of one batch and returns the changes, in their order;
// refused changes did not happen because of maxSubjects, and invalid points say
// nothing. now is the time of arrival.
func (r *partialRule) take(md pmetric.Metrics, now time.Time) (changes []change, refused, invalid int) {
	var evaluated bool
	eachPoint(md, func(metric string, resource pcommon.Map, p pmetric.NumberDataPoint) {
		if metric != names.ServicePartial.Name {
			return
		}
		s, v := serviceOf(resource, p.Attributes()), number(p)
		gone := p.Flags().NoRecordedValue()
		if s.name == "" || math.IsNaN(v) && !gone {
			invalid++
			return
		}
		evaluated = true
		delete(r.restored, s)
		_, was := r.raised[s]
		is := !gone && v > 0
		switch {
		case is == was:
			return
		case is && len(r.raised) >= r.maxSubjects:
			refused++
			return
		}
		c := change{service: s, raised: is, gone: gone, at: p.Timestamp()}
		r.set(c.service, c.raised)
		changes = append(changes, c)
	})
	if evaluated && len(r.restored) > 0 {
		changes = append(changes, r.unheard(now)...)
	}
	return changes, refused, invalid
}

// unheard clears the services that were raised before a restart and that no
// evaluation has named for restoredTTL: they went while nobody watched.
func (r *partialRule) unheard(now time.Time) (changes []change) {
	if r.evaluated.IsZero() {
		r.evaluated = now
	}
	if now.Sub(r.evaluated) < r.restoredTTL {
		return nil
	}
	for s := range r.restored {
		r.set(s, false)
		changes = append(changes, change{service: s, gone: true, unheard: true, at: pcommon.NewTimestampFromTime(now)})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.service.String(), b.service.String()) })
	r.restored = nil
	return changes
}

func (r *partialRule) set(s service, raised bool) {
	if raised {
		r.raised[s] = struct{}{}
	} else {
		delete(r.raised, s)
	}
}

// undo takes changes back whose events could not be handed on, so that the next
// point makes them again. What has changed since is left as it is.
func (r *partialRule) undo(changes []change) {
	for i := len(changes) - 1; i >= 0; i-- {
		c := changes[i]
		if _, raised := r.raised[c.service]; raised == c.raised {
			r.set(c.service, !c.raised)
			if c.unheard {
				if r.restored == nil {
					r.restored = map[service]struct{}{}
				}
				r.restored[c.service] = struct{}{}
			}
		}
	}
}

// events describes the changes, with the details that md has.
func (r *partialRule) events(changes []change, md pmetric.Metrics) []event {
	known := gather(changes, md)
	out := make([]event, 0, len(changes))
	for _, c := range changes {
		d := known[momentOf(c)]
		e := event{
			name:     names.ServicePartial.Name,
			key:      eventKey(names.ServicePartial.Name, c.service.cluster, c.service.namespace, c.service.name),
			at:       c.at,
			resource: c.service.put,
			detail:   d.put,
			state:    names.EventCleared,
			severity: plog.SeverityNumberInfo,
		}
		switch {
		case c.raised:
			e.state, e.severity = names.EventRaised, plog.SeverityNumberWarn
			e.body = c.service.String() + " is partial" + d.sentence()
		case c.unheard:
			e.body = c.service.String() + " was not heard of since the restart, and is no longer partial."
		case c.gone:
			e.body = c.service.String() + " is gone, and its partial state with it."
		default:
			e.body = c.service.String() + " is no longer partial" + d.sentence()
		}
		out = append(out, e)
	}
	return out
}
