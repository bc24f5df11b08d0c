// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/conditions"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/age"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// service is what is known of a service.
type service struct {
	consoleapi.Service
	key       Key
	at        time.Time // when its figures are read
	evaluated time.Time
	oldest    *float64            // age of the oldest point in its averages, in seconds
	own       []consoleapi.Reason // those that follow from its figures
	held      []*inventory.Device
}

// compareReasons compares the worst reasons of two; none comes last.
func compareReasons(a, b []consoleapi.Reason) int {
	if len(a) == 0 || len(b) == 0 {
		return cmp.Compare(min(1, len(b)), min(1, len(a)))
	}
	return consoleapi.CompareReasons(a[0], b[0])
}

func compareServices(a, b *service) int {
	idle := func(s *service) int {
		if s.Devices.Idle == nil {
			return 0
		}
		return *s.Devices.Idle
	}
	return cmp.Or(compareReasons(a.Reasons, b.Reasons), cmp.Compare(idle(b), idle(a)), inventory.CompareKeys(a.key, b.key))
}

// askServices asks for services without their averages; the function returns them after Wait.
func askServices(q *ask.Questions, j *age.Judge, s queries.Selector, at time.Time) func() []*service {
	figures := askAll(q, queries.ServiceStates(s), at)
	evaluated := q.VectorAt(queries.ServicesEvaluated(s), at)
	return func() []*service {
		found := map[Key]*service{}
		of := func(m model.Metric) *service {
			key := inventory.KeyOf(m)
			if found[key] == nil {
				found[key] = &service{key: key, at: at, Service: consoleapi.Service{
					Cluster: optional.Text(m[queries.Cluster]), Namespace: key.Namespace, Service: key.Service, Attention: []consoleapi.Attention{}, Reasons: []consoleapi.Reason{}, NotMeasured: []string{}, SlurmCluster: optional.Text(model.LabelValue(key.Slurm)),
				}}
			}
			return found[key]
		}
		for _, answer := range figures {
			for _, sample := range *answer {
				if inventory.KeyOf(sample.Metric).Service != "" {
					of(sample.Metric).put(sample)
				}
			}
		}
		for _, sample := range *evaluated {
			if known := found[inventory.KeyOf(sample.Metric)]; known != nil {
				known.evaluated = ask.Seconds(sample.Value)
			}
		}
		out := make([]*service, 0, len(found))
		for _, known := range found {
			known.finish(j)
			out = append(out, known)
		}
		return out
	}
}

func askAll(q *ask.Questions, all []string, at time.Time) (answers []*model.Vector) {
	for _, query := range all {
		answers = append(answers, q.VectorAt(query, at))
	}
	return answers
}

// readAverages completes services with their averages. Questions may not be open.
func (r *reading) readAverages(ctx context.Context, list []*service) error {
	r.More(ctx)
	known := make(map[Key]*service, len(list))
	var answers []*model.Vector
	for _, part := range inParts(list, selectorOf) {
		answers = append(answers, askAll(r.Questions, queries.ServiceAverages(selectorOf(part)), part[0].at)...)
	}
	if err := r.Wait(); err != nil {
		return err
	}
	for _, s := range list {
		known[s.key] = s
	}
	for _, answer := range answers {
		for _, sample := range *answer {
			if s := known[inventory.KeyOf(sample.Metric)]; s != nil {
				s.put(sample)
			}
		}
	}
	for _, s := range list {
		s.complete(r.Judge, r.thresholds.IdleThreshold)
	}
	return nil
}

// put notes a figure.
func (s *service) put(sample *model.Sample) {
	m, v := sample.Metric, optional.Pointer(float64(sample.Value))
	switch string(m[model.MetricNameLabel]) {
	case queries.ServiceUtilization:
		s.Values.Utilization = v
	case queries.ServiceUtilizationMin:
		s.UtilizationMin = v
	case queries.ServiceUtilizationMax:
		s.UtilizationMax = v
	case queries.ServiceSM:
		s.Values.SM = v
	case queries.ServiceDRAM:
		s.Values.DRAM = v
	case queries.ServicePipe:
		putPipe(&s.Values, m, v)
	case queries.ServicePodMemory:
		s.Values.MemoryUsed = v
	case queries.ServicePodLimit:
		s.Values.MemoryTotal = v
	case queries.ServicePodPower:
		s.Values.Power = v
	case queries.ServiceMemory:
		s.Totals.MemoryUsed = v
	case queries.ServiceLimit:
		s.Totals.MemoryTotal = v
	case queries.ServicePower:
		s.Totals.Power = v
	case queries.ServicePods:
		s.putPods(consoleapi.PodState(m[queries.StateOfPod]), optional.Whole(v))
	case queries.ServicePending:
		s.Pods.Pending = optional.Whole(v)
	case queries.ServiceDevices:
		switch m[queries.StateOfDevice] {
		case "reporting":
			s.Devices.Reporting = optional.Whole(v)
		case "missing":
			s.Devices.Missing = optional.Whole(v)
		}
	case queries.ServiceIdle:
		s.Devices.Idle = optional.Whole(v)
	case queries.ServiceMissingRatio:
		s.MissingRatio = v
	case queries.ServicePartial:
		s.Partial = optional.Pointer(*v != 0)
	case queries.ServiceDataAge:
		s.oldest = v
	}
}

func (s *service) putPods(state consoleapi.PodState, n *int) {
	switch state {
	case consoleapi.PodReporting:
		s.Pods.Reporting = n
	case consoleapi.PodDegraded:
		s.Pods.Degraded = n
	case consoleapi.PodMissing:
		s.Pods.Missing = n
	case consoleapi.PodWarming:
		s.Pods.Warming = n
	case consoleapi.PodNotRunning:
		s.Pods.NotRunning = n
	}
}

// finish adds what follows from the figures.
func (s *service) finish(j *age.Judge) {
	p := &s.Pods
	p.InMean = optional.Plus(p.Reporting, p.Degraded)
	p.Settled = optional.Plus(p.InMean, p.Missing)
	p.Total = optional.Plus(p.Settled, p.Warming, p.NotRunning)
	if s.oldest != nil && !s.evaluated.IsZero() {
		s.Told = j.Reported(s.evaluated.Add(-time.Duration(*s.oldest * float64(time.Second))))
	}
	s.Stale = s.Stale || !j.Fresh(s.evaluated)
	if !s.evaluated.IsZero() {
		j.Used(s.evaluated)
	}
	s.own = conditions.OfService(&s.Service, !j.Fresh(s.evaluated))
}

// services reads services; if none was evaluated lately, as they were when that
// was last done. Other questions may have been asked before.
func services(ctx context.Context, q *ask.Questions, j *age.Judge, remembered time.Duration, s queries.Selector) ([]*service, error) {
	now := askServices(q, j, s, q.At)
	if err := q.Wait(); err != nil {
		return nil, err
	}
	if found := now(); len(found) > 0 {
		return found, nil
	}
	q.More(ctx)
	last := q.Vector(queries.LastEvaluation(s, remembered))
	if err := q.Wait(); err != nil || len(*last) == 0 {
		return nil, err
	}
	q.More(ctx)
	then := askServices(q, j, s, ask.Seconds((*last)[0].Value))
	if err := q.Wait(); err != nil {
		return nil, err
	}
	return then(), nil
}

// withoutEnded leaves out services that ended while the summary was down: nothing
// ends their series then, so the store shows them as they were. An evaluation has
// been without them, or is overdue, and all of their devices report since, and are
// not theirs. What is silent has not ended.
func withoutEnded(found []*service, inv *inventory.Inventory, evaluations *model.Vector, at time.Time, overdue time.Duration) []*service {
	newest := map[string]time.Time{}
	for _, sample := range *evaluations {
		newest[string(sample.Metric[queries.Cluster])] = ask.Seconds(sample.Value)
	}
	return slices.DeleteFunc(found, func(s *service) bool {
		passed := newest[s.key.Cluster].Sub(s.evaluated) > time.Second || at.Sub(s.evaluated) > overdue
		if !passed || len(s.held) > 0 || len(inv.Had[s.key]) == 0 {
			return false
		}
		for id := range inv.Had[s.key] {
			if d := inv.Devices[id]; d != nil && !d.Seen.After(s.evaluated) {
				return false
			}
		}
		return true
	})
}
