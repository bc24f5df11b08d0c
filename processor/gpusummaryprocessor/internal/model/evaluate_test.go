// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

// ended is what stands for a final stale marker among the values of an evaluation.
var ended = math.Inf(-1)

// view is one expected pod at one evaluation.
type view struct {
	pod   *pod
	age   string
	state string
	// unknown: it may be settled, but for what a start does not know.
	unknown bool
	held    held
	values  [numFields]*value
}

// value is a pod's value of a field, of how many devices it is, and the age of the oldest
// point in it.
type value struct {
	v       float64
	devices int
	age     at
}

// evaluate is everything that is emitted at t, by series; ended where it is a marker.
func (m *model) evaluate(t at) map[string]float64 {
	out := map[string]float64{}
	m.uids = map[*pod]string{}
	m.forget(t)
	services := map[serviceKey][]*pod{}
	for _, p := range m.pods {
		if len(m.announced(p, t)) == 0 {
			p.unannounced = len(p.announcements)
		}
		if m.expected(p, t) {
			// Reading: a pod without a known service is nowhere.
			if k := m.service(p); k.name != "" {
				services[k] = append(services[k], p)
			}
		}
	}
	for k := range services {
		delete(m.emptySince, k)
	}
	m.forgetServices(services, t)

	states := map[podKey]stateReported{}
	stalenesses := map[*pod]at{}
	for k, pods := range services {
		staleness := m.staleness(m.interval(pods))
		if t-m.syncedSince() >= staleness && m.synced() {
			m.open[k] = true
		}
		for _, p := range pods {
			stalenesses[p] = staleness
		}
	}
	m.noteUnfresh(stalenesses, t)
	for k, pods := range services {
		var views []view
		for _, p := range pods {
			v := m.view(p, t, stalenesses[p], m.open[k])
			views = append(views, v)
			m.reportState(out, states, k, v)
		}
		m.reportService(out, k, views, t, stalenesses[pods[0]])
	}
	for k := range m.emptySince {
		if m.synced() && t-m.syncedSince() >= m.staleness(m.cfg.InitialInterval) {
			m.open[k] = true
		}
		m.reportService(out, k, nil, t, m.staleness(m.cfg.InitialInterval))
	}
	m.states = states

	// What was reported and is not reported any more ends, once. The 0 of a state that was
	// left is reported once, and ends nothing further.
	for s, v := range m.reported {
		left := v == 0 && strings.Contains(s, " gpu.pod.state ")
		if _, still := out[s]; !still && v != ended && !left {
			out[s] = ended
		}
	}
	m.reported = out
	return out
}

// forgetServices: "A service without any pod for service_ttl is forgotten". Until then
// it is reported, from the first evaluation without one.
func (m *model) forgetServices(services map[serviceKey][]*pod, t at) {
	for series := range m.reported {
		k, ok := serviceOf(series)
		if _, empty := m.emptySince[k]; ok && !empty && services[k] == nil && m.reported[series] != ended {
			m.emptySince[k] = t
		}
	}
	for k, since := range m.emptySince {
		if t-since >= m.cfg.ServiceTTL {
			delete(m.emptySince, k)
			delete(m.open, k)
			delete(m.partial, k)
			delete(m.hasIdled, k)
		}
	}
}

// synced: "in sync" is Kubernetes' first snapshot; the other sources have nothing to
// wait for.
func (m *model) synced() bool {
	return m.cfg.Expected != summary.Kubernetes || len(m.snapshots) > 0
}

func (m *model) syncedSince() at {
	if m.cfg.Expected == summary.Kubernetes && len(m.snapshots) > 0 {
		return m.snapshots[0].arrived
	}
	return 0
}

// view: a settled pod "is reporting when every device it holds has a current
// point; degraded when some have; missing when none has"; until the start gate is open
// nothing is known.
func (m *model) view(p *pod, t, staleness at, open bool) view {
	v := view{pod: p, age: m.age(p, t, staleness), held: m.holds(p, t, staleness), unknown: m.unknown(p, t, staleness)}
	if !open && v.age == settled {
		v.age = warming
	}
	switch {
	case v.age != settled:
		v.state = v.age
	case len(v.held.reporting) == 0 && !v.held.still:
		v.state = missing
	case len(v.held.reporting) < v.held.count:
		v.state = degraded
	default:
		v.state = reporting
	}
	for f := range numFields {
		v.values[f] = m.podValue(p, v.held.reporting, f, t, staleness)
	}
	return v
}

// podValue: "Over its devices with a fresh point: mean for ratios […], sum for memory
// usage, memory limit and power".
func (m *model) podValue(p *pod, devices []reporter, f field, t, staleness at) *value {
	n, sum, age := 0, 0., never
	for _, d := range devices {
		is, still := m.current(p, d.device, f, t, staleness)
		if !is || still || d.replica && f >= memoryUsage {
			continue
		}
		x, _ := newest(m.pointsOf(p, d.device, f))
		n++
		sum += x.value
		age = max(age, t-x.stamp)
	}
	if n == 0 {
		return nil
	}
	if f < memoryUsage {
		sum /= float64(n)
	}
	return &value{sum, n, age}
}

// noteUnfresh: a device of which utilization was not current at an evaluation starts idle_for again.
// Reading: so does one of a pod that was not expected.
func (m *model) noteUnfresh(stalenesses map[*pod]at, t at) {
	for _, p := range m.pods {
		if uid := m.uid(p); uid != p.unfreshUID {
			if p.unfreshUID != "" {
				p.unfresh = map[string]at{} // another pod
			}
			p.unfreshUID = uid
		}
		staleness, expected := stalenesses[p]
		devices := m.devicesSeenOf(p)
		if m.cfg.Expected == summary.Seen {
			devices = m.devicesSeen(p, t)
		}
		for _, a := range p.announcements {
			if m.stands(p, a, t) {
				devices = append(devices, a.device)
			}
		}
		for _, d := range devices {
			if isFresh, still := m.current(p, d, utilization, t, staleness); !expected || !isFresh || still {
				p.unfresh[d] = t
			}
		}
	}
}

// reportState: "1 for the state it is in, 0 once for the state it left", of a pod that was
// not reported before for the four that it is not in.
func (m *model) reportState(out map[string]float64, now map[podKey]stateReported, k serviceKey, v view) {
	name := func(state string) string { return k.String() + "/" + v.pod.key.name + " gpu.pod.state " + state }
	now[v.pod.key] = stateReported{k, v.state}
	before, ok := m.states[v.pod.key]
	for _, s := range states {
		if !ok || before.service != k || before.state == s {
			out[name(s)] = 0
		}
	}
	out[name(v.state)] = 1
}

// reportService is the table "The fields of a service".
func (m *model) reportService(out map[string]float64, k serviceKey, views []view, t, staleness at) {
	put := func(metric string, v float64) { out[k.String()+" gpu.service."+metric] = v }

	pods := map[string]int{}
	pending, reportingDevices, missingDevices, idle, unknown, quiet, unmeasured := 0, 0, 0, 0, 0, 0, 0
	var averaged []view // "means over its reporting and degraded pods"
	for _, v := range views {
		pods[v.state]++
		reportingDevices += len(v.held.reporting)
		if v.unknown {
			unknown++
		}
		if v.state == notRunning && m.fact(v.pod) != nil && m.fact(v.pod).node == "" {
			pending++
		}
		if v.age != settled {
			continue
		}
		missingDevices += v.held.count - len(v.held.reporting)
		unmeasured += len(v.held.reporting)
		for _, r := range v.held.reporting {
			is, mayBe := m.idle(v.pod, r.device, t, staleness)
			if is {
				idle++
			}
			if mayBe {
				quiet++
			}
		}
		if v.state != missing {
			averaged = append(averaged, v)
		}
	}
	for _, s := range states {
		put("pods "+s, float64(pods[s])) // "all five, 0 included"
	}
	if m.cfg.Expected == summary.Kubernetes && m.synced() {
		// Reading: absent until Kubernetes has reported its pods once.
		put("pods.pending", float64(pending))
	}
	if !m.open[k] {
		return // "nothing is known: partial, missing_ratio and averages are absent"
	}
	put("devices reporting", float64(reportingDevices))
	back, all := m.all(views, t, staleness)
	if unknown == 0 {
		put("devices missing", float64(missingDevices))
		m.reportPartial(put, k, pods, all)
	}
	m.hasIdled[k] = m.hasIdled[k] || idle > 0
	measured := 0
	for _, v := range valuesOf(averaged, utilization) {
		measured += v.devices
	}
	// "idle_devices is absent while no device that reports has utilization".
	if (measured > 0 || unmeasured == measured) && unknown == 0 && quiet == 0 && (back || m.hasIdled[k]) {
		put("idle_devices", float64(idle))
	}

	oldest := never
	for f := range numFields {
		all := valuesOf(averaged, f)
		if len(all) == 0 {
			continue // "each field over the pods that have that field"
		}
		sum, least, most := 0., math.Inf(1), math.Inf(-1)
		for _, v := range all {
			sum += v.v
			least, most = min(least, v.v), max(most, v.v)
			oldest = max(oldest, v.age)
		}
		put(meanOf[f], sum/float64(len(all))) // "each pod one vote"
		if f >= memoryUsage {
			put(sumOf[f], sum)
		}
		if f == utilization {
			put("utilization.min", least)
			put("utilization.max", most)
			put("utilization.devices", float64(measured))
		}
	}
	if oldest != never {
		put("data.age", max(0, oldest.Seconds()))
	}
}

var meanOf = [numFields]string{
	"utilization", "sm.active", "dram.active", "pipe.active tensor", "pipe.active fp16", "pipe.active fp32",
	"pod.memory.usage", "pod.memory.limit", "pod.power",
}

var sumOf = [numFields]string{memoryUsage: "memory.usage", memoryLimit: "memory.limit", power: "power"}

func valuesOf(views []view, f field) []*value {
	var all []*value
	for _, v := range views {
		if v.values[f] != nil {
			all = append(all, v.values[f])
		}
	}
	return all
}

func (k serviceKey) String() string {
	if k.cluster != "" {
		return k.cluster + ":" + k.namespace + "/" + k.name
	}
	return k.namespace + "/" + k.name
}

// serviceOf is the service that a series of the service itself belongs to.
func serviceOf(series string) (serviceKey, bool) {
	who, what, _ := strings.Cut(series, " ")
	if !strings.HasPrefix(what, "gpu.service.") {
		return serviceKey{}, false
	}
	cluster, rest, found := strings.Cut(who, ":")
	if !found {
		cluster, rest = "", who
	}
	namespace, name, _ := strings.Cut(rest, "/")
	return serviceKey{cluster, namespace, name}, true
}

// difference is the first difference between two evaluations, "" where there is none:
// means within 1e-9, counts exactly, absent strictly.
func difference(want, got map[string]float64) string {
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, s := range slices.Sorted(maps.Keys(all)) {
		w, inModel := want[s]
		g, inSummary := got[s]
		if inModel && inSummary && (w == g || !exact(s) && math.Abs(w-g) <= 1e-9*math.Max(math.Abs(w), math.Abs(g))) {
			continue
		}
		return s + ": " + text(w, inModel) + " by the model, " + text(g, inSummary) + " by the summary"
	}
	return ""
}

// exact distinguishes counts and states from averages.
func exact(series string) bool {
	for _, count := range []string{".pods", ".devices ", ".idle_devices", ".partial", "gpu.pod.state"} {
		if strings.Contains(series, count) {
			return true
		}
	}
	return false
}

func text(v float64, present bool) string {
	switch {
	case !present:
		return "absent"
	case v == ended:
		return "ended"
	default:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
}
