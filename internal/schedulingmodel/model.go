// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package schedulingmodel counts every figure of gpu_scheduling from lists of objects, as
// its README defines them and as slowly as that is: for tests, which compare. It shares no
// code with what it is compared with.
package schedulingmodel

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Objects are what the API has.
type Objects struct {
	Nodes  []*corev1.Node
	Pods   []*corev1.Pod
	Claims []*resourcev1.ResourceClaim
	Slices []*resourcev1.ResourceSlice
	// Classes are read where the Model has Serves.
	Classes []*resourcev1.DeviceClass
}

// Model counts. It remembers the pods that it was shown, those that are gone too.
type Model struct {
	// Window is for how long a pod counts in what is usual.
	Window time.Duration
	// Tolerated are the keys of taints that pods with devices tolerate.
	Tolerated []string
	// Device is whether an extended resource is an accelerator, Driver whether a driver of
	// ResourceSlices is one of those, and so is a DeviceClass of that name.
	Device, Driver func(string) bool
	// Serves is the driver of a DeviceClass; nil: classes are not read.
	Serves func(class string) string

	seen    map[types.UID]*request
	largest map[string]int // devices of a node, by resource
}

// absurd is the number of devices of a resource above which a request counts as none.
const absurd = 16384

// request is what a pod asks for.
type request struct {
	alive       time.Time      // when it was last seen, or created where it was over then
	cpu, memory int64          // thousandths of a CPU, bytes
	devices     map[string]int // by resource
}

// Figures are values by metric and attributes: name{key=value,…}, the attributes in the
// order node, resource, model, namespace, queue, and what the metric has of its own.
type Figures map[string]float64

// Of counts the figures of some objects. Ages are in seconds.
func (m *Model) Of(o Objects, now time.Time) Figures {
	out := Figures{}
	m.remember(o, now)
	m.measure(o)
	for _, n := range o.Nodes {
		for _, resource := range m.resources(o, n) {
			allocatable, requested := m.allocatable(o, n, resource), m.requested(o, n, resource)
			if allocatable == 0 && requested == 0 || m.unknown(o, n, resource) {
				continue
			}
			free := max(0, allocatable-requested)
			kind := fmt.Sprintf("resource=%s,model=%s", resource, m.hwModel(o, n, resource))
			for state, devices := range map[string]int{
				"allocatable": allocatable, "requested": requested, "free": free, "stranded": free - m.usable(o, n, resource, now),
			} {
				out[fmt.Sprintf("gpu.node.devices{node=%s,%s,state=%s}", n.Name, kind, state)] = float64(devices)
			}
			m.strand(o, n, resource, kind, now, out)
			if m.unschedulable(n) == "" {
				out["free{"+kind+"}"] += float64(free)
				for _, r := range []int{1, 2, 4, 8} {
					out[fmt.Sprintf("gpu.scheduling.fit{%s,size=%d}", kind, r)] += float64(m.usable(o, n, resource, now) / r)
				}
				for r := range m.shares(resource, now) {
					out[fmt.Sprintf("fit{%s,size=%d}", kind, r)] += float64(m.usable(o, n, resource, now) / r)
				}
			}
			// One that no schedulable node has is there with nothing.
			out["free{"+kind+"}"] += 0
			for _, r := range []int{1, 2, 4, 8} {
				out[fmt.Sprintf("gpu.scheduling.fit{%s,size=%d}", kind, r)] += 0
			}
		}
	}
	m.fragmentation(out, now)
	m.pending(o, now, out)
	return out
}

// remember takes in the pods as they are.
func (m *Model) remember(o Objects, now time.Time) {
	if m.seen == nil {
		m.seen = map[types.UID]*request{}
	}
	for _, p := range o.Pods {
		devices := m.devicesOf(o, p)
		if len(devices) == 0 {
			continue
		}
		is := &request{p.CreationTimestamp.Time, amount(p, cpu), amount(p, memory), devices}
		if !over(p) {
			is.alive = now
		} else if m.seen[p.UID] != nil {
			continue
		}
		m.seen[p.UID] = is
	}
}

// measure notes how many devices the largest node has of each resource.
func (m *Model) measure(o Objects) {
	m.largest = map[string]int{}
	for _, n := range o.Nodes {
		for _, resource := range m.resources(o, n) {
			m.largest[resource] = max(m.largest[resource], m.allocatable(o, n, resource))
			if m.unknown(o, n, resource) {
				m.largest[resource] = absurd
			}
		}
	}
}

// usual are the pods that asked for a resource and were alive within the window. A node has to be
// large enough for them.
func (m *Model) usual(resource string, now time.Time) []*request {
	var out []*request
	for _, is := range m.seen {
		if is.devices[resource] > 0 && is.devices[resource] <= m.largest[resource] && now.Sub(is.alive) <= m.Window {
			out = append(out, is)
		}
	}
	return out
}

// shares are which part of the devices was asked for in requests of each size.
func (m *Model) shares(resource string, now time.Time) map[int]float64 {
	total, of := 0, map[int]int{}
	for _, is := range m.usual(resource, now) {
		of[is.devices[resource]] += is.devices[resource]
		total += is.devices[resource]
	}
	out := map[int]float64{}
	for r, devices := range of {
		out[r] = float64(devices) / float64(total)
	}
	return out
}

// enough is for how many devices there is enough left on a node, as many as the median pod
// takes for one. Where it takes nothing, that is no limit.
func (m *Model) enough(left int64, of func(*request) int64, resource string, now time.Time) int {
	usual := m.usual(resource, now)
	if len(usual) == 0 {
		return 1 << 30
	}
	slices.SortFunc(usual, func(a, b *request) int { // a/n < b/k
		return int(of(a)*int64(b.devices[resource]) - of(b)*int64(a.devices[resource]))
	})
	median := usual[(len(usual)-1)/2]
	each, devices := of(median), int64(median.devices[resource])
	if each == 0 {
		return 1 << 30
	}
	return int(max(0, left) * devices / each)
}

// usable is how many free devices of a node pods can get.
func (m *Model) usable(o Objects, n *corev1.Node, resource string, now time.Time) int {
	if m.unschedulable(n) != "" {
		return 0
	}
	return min(m.free(o, n, resource), m.byCPU(o, n, resource, now), m.byMemory(o, n, resource, now))
}

func (m *Model) free(o Objects, n *corev1.Node, resource string) int {
	return max(0, m.allocatable(o, n, resource)-m.requested(o, n, resource))
}

func (m *Model) byCPU(o Objects, n *corev1.Node, resource string, now time.Time) int {
	left := n.Status.Allocatable.Cpu().MilliValue() - taken(o, n, cpu)
	return m.enough(left, func(is *request) int64 { return is.cpu }, resource, now)
}

func (m *Model) byMemory(o Objects, n *corev1.Node, resource string, now time.Time) int {
	left := n.Status.Allocatable.Memory().Value() - taken(o, n, memory)
	return m.enough(left, func(is *request) int64 { return is.memory }, resource, now)
}

// strand says why the free devices of a node that are of no use are not.
func (m *Model) strand(o Objects, n *corev1.Node, resource, kind string, now time.Time, out Figures) {
	add := func(reason string, devices int) {
		out[fmt.Sprintf("gpu.scheduling.stranded{%s,reason=%s}", kind, reason)] += float64(devices)
	}
	for _, reason := range []string{"cordoned", "not_ready", "tainted", "cpu", "memory"} {
		add(reason, 0)
	}
	free := m.free(o, n, resource)
	if why := m.unschedulable(n); why != "" {
		add(why, free)
		return
	}
	byCPU := min(free, m.byCPU(o, n, resource, now))
	add("cpu", free-byCPU)
	add("memory", byCPU-min(byCPU, m.byMemory(o, n, resource, now)))
}

// unschedulable is why no pod gets a place on a node; "" if one may.
func (m *Model) unschedulable(n *corev1.Node) string {
	if n.Spec.Unschedulable {
		return "cordoned"
	}
	ready := false
	for _, c := range n.Status.Conditions {
		ready = ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}
	if !ready {
		return "not_ready"
	}
	for _, t := range n.Spec.Taints {
		if (t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute) && !slices.Contains(m.Tolerated, t.Key) {
			return "tainted"
		}
	}
	return ""
}

// fragmentation follows from sums over nodes, and takes those out that are no figure.
func (m *Model) fragmentation(out Figures, now time.Time) {
	for _, key := range slices.Sorted(maps.Keys(out)) {
		kind, is := strings.CutPrefix(key, "free{")
		if !is {
			continue
		}
		free := out[key]
		delete(out, key)
		if free == 0 {
			continue
		}
		kind = strings.TrimSuffix(kind, "}")
		for _, r := range []int{1, 2, 4, 8} {
			fit := out[fmt.Sprintf("gpu.scheduling.fit{%s,size=%d}", kind, r)]
			out[fmt.Sprintf("gpu.scheduling.fragmentation{%s,size=%d}", kind, r)] = 1 - float64(r)*fit/free
		}
		resource, _, _ := strings.Cut(strings.TrimPrefix(kind, "resource="), ",")
		expected, known := 0., false
		for r, share := range m.shares(resource, now) {
			expected += share * (1 - float64(r)*out[fmt.Sprintf("fit{%s,size=%d}", kind, r)]/free)
			known = true
		}
		if known {
			out["gpu.scheduling.fragmentation{"+kind+",size=expected}"] = expected
		}
	}
	maps.DeleteFunc(out, func(key string, _ float64) bool { return strings.HasPrefix(key, "fit{") })
}

// pending counts the pods that wait for a node.
func (m *Model) pending(o Objects, now time.Time, out Figures) {
	var waiting []*corev1.Pod
	taken := map[string]bool{} // claims of pods on nodes, and of pods that came before
	for _, p := range o.Pods {
		switch {
		case over(p):
		case p.Spec.NodeName != "":
			for _, c := range claimsOf(o, p) {
				taken[c.Namespace+"/"+c.Name] = true
			}
		case p.DeletionTimestamp == nil:
			waiting = append(waiting, p)
		}
	}
	slices.SortFunc(waiting, func(a, b *corev1.Pod) int {
		return strings.Compare(a.Namespace+"\x00"+a.Name, b.Namespace+"\x00"+b.Name)
	})
	for _, p := range waiting {
		devices := m.extended(o, p)
		asks := map[string]bool{}
		for r := range devices {
			asks[r] = true
		}
		for _, c := range claimsOf(o, p) {
			for r, n := range m.claimed(o, c) {
				asks[r] = true
				if !taken[c.Namespace+"/"+c.Name] {
					devices[r] += n
				}
			}
			taken[c.Namespace+"/"+c.Name] = true
		}
		if len(asks) == 0 {
			continue
		}
		group := fmt.Sprintf("namespace=%s,queue=%s,reason=%s", p.Namespace, queue(p), m.Reason(p))
		for r := range asks {
			out[fmt.Sprintf("gpu.scheduling.pending.pods{%s,resource=%s}", group, r)]++
			out[fmt.Sprintf("gpu.scheduling.pending.devices{%s,resource=%s}", group, r)] += float64(devices[r])
		}
		oldest := "gpu.scheduling.pending.age.max{" + group + "}"
		out[oldest] = max(out[oldest], now.Sub(p.CreationTimestamp.Time).Seconds())
	}
}
