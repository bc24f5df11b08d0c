// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/conditions"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

func keyOf(m model.Metric) Key {
	return Key{string(m[queries.Cluster]), string(m[queries.Namespace]), string(m[queries.Service])}
}

func (k Key) selector() queries.Selector { return queries.OfService(k.Cluster, k.Namespace, k.Service) }

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Cluster, b.Cluster))
}

// service is what is known of a service.
type service struct {
	consoleapi.Service
	key       Key
	evaluated time.Time
	own       []consoleapi.Reason // those that follow from its figures
	held      []*device
}

// askServices asks for services; the function returns them after wait.
func (r *reading) askServices(s queries.Selector, at time.Time) func() []*service {
	figures := r.vectorAt(queries.Services(s), at)
	evaluated := r.vectorAt(queries.ServicesEvaluated(s), at)
	return func() []*service {
		found := map[Key]*service{}
		ages := map[Key]float64{}
		of := func(m model.Metric) *service {
			key := keyOf(m)
			if found[key] == nil {
				found[key] = &service{key: key, Service: consoleapi.Service{
					Cluster: text(m[queries.Cluster]), Namespace: key.Namespace, Service: key.Service, Attention: []consoleapi.Attention{}, Reasons: []consoleapi.Reason{},
				}}
			}
			return found[key]
		}
		for _, sample := range *figures {
			if keyOf(sample.Metric).Service != "" {
				of(sample.Metric).put(sample, ages)
			}
		}
		for _, sample := range *evaluated {
			if known := found[keyOf(sample.Metric)]; known != nil {
				known.evaluated = seconds(sample.Value)
			}
		}
		out := make([]*service, 0, len(found))
		for key, known := range found {
			age, averaged := ages[key]
			r.finish(known, age, averaged)
			out = append(out, known)
		}
		return out
	}
}

// put notes a figure.
func (s *service) put(sample *model.Sample, ages map[Key]float64) {
	m, v := sample.Metric, pointer(float64(sample.Value))
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
		s.putPods(consoleapi.PodState(m[queries.StateOfPod]), whole(v))
	case queries.ServicePending:
		s.Pods.Pending = whole(v)
	case queries.ServiceDevices:
		switch m[queries.StateOfDevice] {
		case "reporting":
			s.Devices.Reporting = whole(v)
		case "missing":
			s.Devices.Missing = whole(v)
		}
	case queries.ServiceIdle:
		s.Devices.Idle = whole(v)
	case queries.ServiceMissingRatio:
		s.MissingRatio = v
	case queries.ServicePartial:
		s.Partial = pointer(*v != 0)
	case queries.ServiceDataAge:
		ages[s.key] = *v
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
func (r *reading) finish(s *service, age float64, averaged bool) {
	p, d := &s.Pods, &s.Devices
	p.InMean = plus(p.Reporting, p.Degraded)
	p.Settled = plus(p.InMean, p.Missing)
	p.Total = plus(p.Settled, p.Warming, p.NotRunning)
	d.Held = plus(d.Reporting, d.Missing)
	if averaged && !s.evaluated.IsZero() {
		s.Told = r.reported(s.evaluated.Add(-time.Duration(age * float64(time.Second))))
	}
	s.Stale = s.Stale || !r.fresh(s.evaluated)
	if !s.evaluated.IsZero() {
		r.used(s.evaluated)
	}
	s.own = conditions.OfService(&s.Service, !r.fresh(s.evaluated))
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
	return cmp.Or(compareReasons(a.Reasons, b.Reasons), cmp.Compare(idle(b), idle(a)), compareKeys(a.key, b.key))
}

// services reads services; if none was evaluated lately, as they were when that
// was last done. Other questions may have been asked before.
func (r *reading) services(ctx context.Context, s queries.Selector) ([]*service, error) {
	now := r.askServices(s, r.at)
	if err := r.wait(); err != nil {
		return nil, err
	}
	if found := now(); len(found) > 0 {
		return found, nil
	}
	r.more(ctx)
	last := r.vector(queries.LastEvaluation(s, r.options.Remembered))
	if err := r.wait(); err != nil || len(*last) == 0 {
		return nil, err
	}
	r.more(ctx)
	then := r.askServices(s, seconds((*last)[0].Value))
	if err := r.wait(); err != nil {
		return nil, err
	}
	return then(), nil
}

// Services reads all services that match a text (of their name, namespace or
// cluster), those that need attention first, and the whole fleet.
func (r *Reader) Services(ctx context.Context, match string) (*Services, error) {
	reading := r.read(ctx)
	attention := reading.askAttention(queries.All)
	found, inv, err := reading.fleet(ctx)
	if err != nil {
		return nil, err
	}
	wrong, err := attention(ctx, inv)
	if err != nil {
		return nil, err
	}
	attend(found, wrong)
	out := &Services{reading: reading, Summary: reading.summarize(found, inv, r.ofFleet(found, wrong))}
	match = strings.ToLower(match)
	for _, s := range found {
		if match == "" || contains(match, s.key.Service, s.key.Namespace, s.key.Cluster) {
			out.list = append(out.list, s)
		}
	}
	return out, nil
}

// fleet reads all services and devices. Other questions may have been asked before.
func (r *reading) fleet(ctx context.Context) ([]*service, *inventory, error) {
	return r.servicesAndDevices(ctx, queries.All, queries.All)
}

// servicesAndDevices reads some services, with what some devices add to them.
func (r *reading) servicesAndDevices(ctx context.Context, some, devices queries.Selector) ([]*service, *inventory, error) {
	inventory, amounts := r.askInventory(devices), r.askAmounts(devices)
	missing, newest := r.vector(queries.MissingPods(some)), r.vector(queries.NewestEvaluations(devices))
	found, err := r.services(ctx, some)
	if err != nil {
		return nil, nil, err
	}
	inv, err := inventory(ctx)
	if err != nil {
		return nil, nil, err
	}
	amounts(inv)
	r.judge(inv, found, missing)
	r.measure(inv, found)
	return r.withoutEnded(found, inv, newest), inv, nil
}

// withoutEnded leaves out services that ended while the summary was down: nothing
// ends their series then, so the store shows them as they were. An evaluation has
// been without them, or is overdue, and all of their devices report since, and are
// not theirs. What is silent has not ended.
func (r *reading) withoutEnded(found []*service, inv *inventory, evaluations *model.Vector) []*service {
	newest := map[string]time.Time{}
	for _, sample := range *evaluations {
		newest[string(sample.Metric[queries.Cluster])] = seconds(sample.Value)
	}
	return slices.DeleteFunc(found, func(s *service) bool {
		passed := newest[s.key.Cluster].Sub(s.evaluated) > time.Second || r.at.Sub(s.evaluated) > r.options.gap()
		if !passed || len(s.held) > 0 || len(inv.had[s.key]) == 0 {
			return false
		}
		for id := range inv.had[s.key] {
			if d := inv.devices[id]; d != nil && !d.seen.After(s.evaluated) {
				return false
			}
		}
		return true
	})
}

func contains(match string, texts ...string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(strings.ToLower(t), match) })
}

// Services are all services that match.
type Services struct {
	reading *reading
	list    []*service
	Summary consoleapi.FleetSummary
}

// Freshness of the services.
func (s *Services) Freshness() consoleapi.Freshness { return s.reading.freshness() }

// Len is how many there are.
func (s *Services) Len() int { return len(s.list) }

// Key distinguishes one from all others.
func (s *Services) Key(i int) string {
	k := s.list[i].key
	return k.Cluster + "\x00" + k.Namespace + "\x00" + k.Service
}

// Page returns some of them, with the trend of each on a grid if wanted: over a
// window, or over the one to open with.
func (s *Services) Page(ctx context.Context, from, to int, trend bool, over *Window) ([]consoleapi.Service, *consoleapi.Grid, error) {
	page := make([]consoleapi.Service, 0, to-from)
	for _, one := range s.list[from:to] {
		page = append(page, one.Service)
	}
	if !trend {
		return page, nil, nil
	}
	if over == nil {
		s.reading.more(ctx)
		opening := s.reading.askWindow()
		if err := s.reading.wait(); err != nil {
			return nil, nil, err
		}
		over = pointer(opening())
	}
	g := newGrid(s.reading.at, over.Length, over.Length/(trendPoints-1))
	if len(page) > 0 {
		lines, err := s.reading.trends(ctx, s.list[from:to], g)
		if err != nil {
			return nil, nil, err
		}
		for i := range page {
			page[i].Trend = lines[i]
		}
	}
	return page, &consoleapi.Grid{Start: g.start, Step: g.step.Seconds(), Points: g.points}, nil
}

// trendPoints is how many values a trend has.
const trendPoints = 31

func (r *reading) trends(ctx context.Context, list []*service, g grid) ([][]*float64, error) {
	var services, namespaces []string
	lines := make([][]*float64, len(list))
	at := map[Key]int{}
	for i, s := range list {
		lines[i] = g.line()
		at[s.key] = i
		services = append(services, s.key.Service)
		namespaces = append(namespaces, s.key.Namespace)
	}
	slices.Sort(services)
	slices.Sort(namespaces)
	// A superset, because names are matched one label at a time.
	some := queries.Fits(queries.And(
		queries.OneOf(queries.Service, slices.Compact(services)...), queries.OneOf(queries.Namespace, slices.Compact(namespaces)...)))
	r.more(ctx)
	found := r.matrix(queries.Trend(some, queries.Smooth{Step: g.step, Gap: r.options.gap()}), g)
	if err := r.wait(); err != nil {
		return nil, err
	}
	for _, stream := range *found {
		if i, ok := at[keyOf(stream.Metric)]; ok {
			g.fill(lines[i], stream)
		}
	}
	return lines, nil
}

// Service reads one service and the names of its missing pods; nil is unknown.
func (r *Reader) Service(ctx context.Context, key Key) (*consoleapi.ServiceAnswer, error) {
	reading := r.read(ctx)
	pods := reading.vector(queries.MissingPods(key.selector()))
	// Of the whole cluster, for a device that is lost has no owner.
	attention := reading.askAttention(queries.Is(queries.Cluster, key.Cluster))
	found, inv, err := reading.servicesAndDevices(ctx, key.selector(), queries.Is(queries.Cluster, key.Cluster))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	wrong, err := attention(ctx, inv)
	if err != nil {
		return nil, err
	}
	attend(found, wrong)
	one := found[0]
	shown, err := reading.show(ctx, one.held)
	if err != nil {
		return nil, err
	}
	_, one.Coverage = over(reading.measured(one.held, shown))
	missing := []string{}
	for _, sample := range *pods {
		if sample.Value == 1 {
			missing = append(missing, string(sample.Metric[queries.Pod]))
		}
	}
	slices.Sort(missing)
	return &consoleapi.ServiceAnswer{
		Service: one.Service, MissingPods: missing[:min(len(missing), maxMissing)], Freshness: reading.freshness(),
	}, nil
}

// maxMissing is how many missing pods are named.
const maxMissing = 50
