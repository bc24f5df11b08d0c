// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// tenant is a service as the rules see it.
type tenant struct {
	service  service
	at       pcommon.Timestamp // of the newest evaluation
	heard    time.Duration
	restored bool // something is raised since before a restart, and it was not heard of since
	conds    [3]condition
}

func (t *tenant) raised() bool {
	return t.conds[partial].level > 0 || t.conds[noData].level > 0 || t.conds[idleHeld].level > 0
}

const (
	partial = iota
	noData
	idleHeld
)

// serviceRules are the rules about services, by condition. An evaluation already
// is about some time, so that none has a duration of its own.
var serviceRules = [3]rule{
	partial:  {event: names.EventServicePartial, levels: []level{{0, plog.SeverityNumberWarn}}},
	noData:   {event: names.EventServiceNoData, levels: []level{{0, plog.SeverityNumberError}}},
	idleHeld: {event: names.EventIdleHeld, levels: []level{{0, plog.SeverityNumberInfo}}},
}

// evaluation is what the rules read of one evaluation of one service; what is
// not said is NaN or -1.
type evaluation struct {
	moment
	gone             bool // the summary forgot the service: nothing but an end
	live             bool // there was a value
	partial, idle    float64
	missing, settled int64
	reporting        int64 // and degraded: pods with data
	said             uint8 // which of the three states were there
}

const allStates = 1 | 2 | 4

// serviceBatch are the evaluations of one batch.
type serviceBatch struct {
	evaluations []evaluation
	index       map[moment]int
}

func (b *serviceBatch) at(m moment) *evaluation {
	if n := len(b.evaluations); n > 0 && b.evaluations[n-1].moment == m {
		return &b.evaluations[n-1]
	}
	i, ok := b.index[m]
	if !ok {
		if b.index == nil {
			b.index = map[moment]int{}
		}
		i = len(b.evaluations)
		b.index[m] = i
		b.evaluations = append(b.evaluations, evaluation{moment: m, partial: math.NaN(), idle: math.NaN(), missing: -1, settled: -1, reporting: -1})
	}
	return &b.evaluations[i]
}

// believe takes the end of gpu.service.partial for the end of its service only where the
// batch has no value of the service at that time or later. Otherwise it is not known
// whether the service is partial, which changes nothing.
func (b *serviceBatch) believe() {
	if !slices.ContainsFunc(b.evaluations, func(ev evaluation) bool { return ev.gone }) {
		return
	}
	live := map[service]bool{}
	for i := len(b.evaluations) - 1; i >= 0; i-- {
		ev := &b.evaluations[i]
		live[ev.service] = live[ev.service] || ev.live
		ev.gone = ev.gone && !live[ev.service]
	}
}

// readService takes a point of a service's evaluation.
func (e *engine) readService(r *reading, metric string, p pmetric.NumberDataPoint) {
	s := serviceOf(r.attrs, p.Attributes())
	v, gone := number(p), p.Flags().NoRecordedValue()
	if s.name == "" || (math.IsNaN(v) || math.IsInf(v, 0)) && !gone {
		e.invalid(metric)
		return
	}
	if gone && metric != names.ServicePartial.Name {
		return // a series that ends for a while; the service itself ends with its state
	}
	ev := e.serviceBatch.at(moment{s, p.Timestamp()})
	if gone {
		ev.gone = true
		return
	}
	ev.live = true
	switch metric {
	case names.ServicePartial.Name:
		ev.partial = v
	case names.ServiceIdleDevices.Name:
		ev.idle = v
	case names.ServicePods.Name:
		ev.count(text(names.GPUPodState, r.attrs, p.Attributes()), int64(v))
	}
}

// count adds the pods in one state; settled pods are in one of three.
func (ev *evaluation) count(state string, pods int64) {
	switch state {
	case "missing":
		ev.missing = pods
		ev.said |= 1
	case "reporting":
		ev.reporting = max(ev.reporting, 0) + pods
		ev.said |= 2
	case "degraded":
		ev.reporting = max(ev.reporting, 0) + pods
		ev.said |= 4
	default:
		return
	}
	ev.settled = max(ev.settled, 0) + pods
}

// judgeServices judges the evaluations of a batch, in the order of their times.
func (e *engine) judgeServices(md pmetric.Metrics) {
	b := &e.serviceBatch
	slices.SortStableFunc(b.evaluations, func(x, y evaluation) int { return cmp.Compare(x.at, y.at) })
	b.believe()
	first := len(e.waiting)
	var told []moment
	for i := range b.evaluations {
		n := len(e.waiting)
		e.judgeService(&b.evaluations[i])
		for ; n < len(e.waiting); n++ {
			told = append(told, b.evaluations[i].moment)
		}
	}
	if len(told) > 0 { // now that something is told, what it is about is looked up
		known := gather(told, md)
		for i, m := range told {
			e.waiting[first+i].explain(m.service, known[m])
		}
	}
	b.evaluations = b.evaluations[:0]
	clear(b.index)
	e.forgetUnheard()
}

func (e *engine) judgeService(ev *evaluation) {
	if !ev.gone && !ev.live {
		return
	}
	t := e.services[ev.service]
	if t == nil {
		if ev.gone {
			return
		}
		if t = e.tenant(ev); t == nil {
			return
		}
	}
	if ev.at < t.at && e.now-t.heard < clockSet {
		e.counts.late++
		return
	}
	t.at, t.heard = ev.at, e.now
	if t.restored {
		t.restored = false
		e.unheard--
	}
	if e.summed == 0 {
		e.summed = e.now
	}
	judge := func(i int, known, is bool) {
		if !known {
			return
		}
		next := uint8(0)
		if is {
			next = 1
		}
		e.moveService(t, i, next, ev.at, "")
	}
	if ev.gone {
		e.dropService(t, ev.at, "gone")
		return
	}
	// Without a pod that should have data there is neither data nor its lack:
	// only the first fresh point clears.
	settled, fresh := ev.settled > 0, ev.reporting > 0
	lacks := ev.said == allStates && settled && !fresh
	if e.cfg.Events.ServicePartial.Enabled {
		judge(partial, !math.IsNaN(ev.partial), ev.partial > 0)
	}
	if e.cfg.Events.ServiceNoData.Enabled {
		judge(noData, fresh || lacks && (t.conds[noData].level > 0 || !e.withNode(t.service)), lacks)
	}
	if e.cfg.Events.IdleHeld.Enabled {
		judge(idleHeld, !math.IsNaN(ev.idle), ev.idle > 0)
	}
}

// moveService raises or clears; why says why something ended that was not said
// to be over.
func (e *engine) moveService(t *tenant, i int, next uint8, at pcommon.Timestamp, why string) {
	if next == t.conds[i].level {
		return
	}
	e.move(&t.conds[i], &serviceRules[i], next, at, func(ev *event) {
		s := t.service
		ev.key = eventKey(ev.name, s.cluster, s.namespace, s.name)
		ev.resource = s.put
		ev.why = why
	})
}

// tenant makes a service known. Where there are too many, one about which
// nothing is raised makes room; nil when there is none.
func (e *engine) tenant(ev *evaluation) *tenant {
	if len(e.services) >= e.cfg.MaxSubjects {
		for s, t := range e.services {
			if !t.raised() {
				delete(e.services, s)
				break
			}
		}
	}
	if len(e.services) >= e.cfg.MaxSubjects {
		if ev.partial > 0 && e.cfg.Events.ServicePartial.Enabled {
			e.refuse(names.EventServicePartial)
		} else {
			e.unwatched("service")
		}
		return nil
	}
	s := ev.service
	t := &tenant{service: service{strings.Clone(s.cluster), strings.Clone(s.namespace), strings.Clone(s.name)}}
	e.services[t.service] = t
	return t
}

// dropService forgets a service and clears what is raised about it.
func (e *engine) dropService(t *tenant, at pcommon.Timestamp, why string) {
	for i := range t.conds {
		e.moveService(t, i, 0, at, why)
	}
	if !t.raised() {
		delete(e.services, t.service)
	}
}

// forgetUnheard clears what was raised before a restart about services that no
// evaluation has named for restored_ttl: they went while nobody watched.
func (e *engine) forgetUnheard() {
	if e.unheard == 0 || e.summed == 0 || e.now-e.summed < e.cfg.RestoredTTL {
		return
	}
	var gone []*tenant
	for _, t := range e.services {
		if t.restored {
			gone = append(gone, t)
		}
	}
	slices.SortFunc(gone, func(a, b *tenant) int { return cmp.Compare(a.service.String(), b.service.String()) })
	for _, t := range gone {
		n := len(e.waiting)
		e.dropService(t, pcommon.NewTimestampFromTime(e.wall), "unheard")
		for ; n < len(e.waiting); n++ {
			e.waiting[n].explain(t.service, nil)
		}
		if t.restored = t.raised(); !t.restored {
			e.unheard--
		}
	}
}
