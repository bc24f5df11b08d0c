// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// partialRule raises gpu.service.partial while a service is partial.
//
// It remembers only which services are raised. A service that was never heard
// of and one that is not partial are the same to it: the first 1 raises, be it
// after a restart, and the first 0 does nothing. Without input nothing changes.
type partialRule struct {
	maxSubjects int
	raised      map[service]struct{}
}

// change is one service that became partial or ceased to be.
type change struct {
	service service
	raised  bool
	gone    bool // the service itself was forgotten
	at      pcommon.Timestamp
}

func newPartialRule(maxSubjects int) *partialRule {
	return &partialRule{maxSubjects: maxSubjects, raised: map[service]struct{}{}}
}

// take reads the points of one batch and returns the changes, in their order;
// refused changes did not happen because of maxSubjects, and invalid points say
// nothing.
func (r *partialRule) take(md pmetric.Metrics) (changes []change, refused, invalid int) {
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
	return changes, refused, invalid
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
		case c.gone:
			e.body = c.service.String() + " is gone, and its partial state with it."
		default:
			e.body = c.service.String() + " is no longer partial" + d.sentence()
		}
		out = append(out, e)
	}
	return out
}
