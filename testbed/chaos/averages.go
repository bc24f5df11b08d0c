// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// average is a field of a service that is made of what its devices do.
type average struct {
	key string // averageKey
	of  func(*gpusim.DeviceTruth) float64
	// has reports whether a pod's telemetry has it of a device; nil: always.
	has func(l *life, device string) bool
	// added: a pod has the sum over its devices, and not the mean.
	added bool
	over  over
	// rounding is how far what exporters print may be from the truth.
	rounding float64
}

// over is how a service's value is made of its pods'.
type over int

const (
	meanOfPods over = iota
	sumOfPods
	leastOfPods
	mostOfPods
)

// averageKey is a metric, and the pipe if it is of one.
func averageKey(metric, pipe string) string {
	if pipe == "" {
		return metric
	}
	return metric + " " + pipe
}

// fullPages is the node with an exporter that has all fields on its page; the others
// have what an exporter has by default. So some pods of a service have a field
// and some have not, and those must not pull its average down.
const fullPages = "whole"

const (
	wholePercent = 0.0051 // GPU_UTIL has no decimals
	decimals     = 1e-5   // what is printed with six of them
	oneByte      = 1
)

// averages are all that the simulated exporters make knowable.
var averages = func() []average {
	full := func(l *life, _ string) bool { return l.node == fullPages }
	// What a replica of a shared GPU uses of its memory and power is not reported.
	own := func(l *life, _ string) bool { return !l.shared() }
	// The power of a MIG instance neither.
	board := func(l *life, device string) bool { return !l.shared() && !strings.Contains(device, "/") }
	util := func(d *gpusim.DeviceTruth) float64 { return d.Utilization }
	used := func(d *gpusim.DeviceTruth) float64 { return float64(d.MemoryUsedMiB) * mib }
	total := func(d *gpusim.DeviceTruth) float64 { return float64(d.MemoryTotalMiB) * mib }
	power := func(d *gpusim.DeviceTruth) float64 { return d.PowerWatts }
	pipe := func(name string) string { return averageKey(names.ServicePipeActive.Name, name) }
	return []average{
		{key: names.ServiceUtilization.Name, of: util, rounding: wholePercent},
		{key: names.ServiceUtilizationMin.Name, of: util, over: leastOfPods, rounding: wholePercent},
		{key: names.ServiceUtilizationMax.Name, of: util, over: mostOfPods, rounding: wholePercent},
		{key: names.ServiceDRAMActive.Name, of: func(d *gpusim.DeviceTruth) float64 { return d.DRAMActive }, rounding: decimals},
		{key: pipe("tensor"), of: func(d *gpusim.DeviceTruth) float64 { return d.TensorActive }, rounding: decimals},
		{key: pipe("fp16"), of: func(d *gpusim.DeviceTruth) float64 { return d.FP16Active }, has: full, rounding: decimals},
		{key: pipe("fp32"), of: func(d *gpusim.DeviceTruth) float64 { return d.FP32Active }, has: full, rounding: decimals},
		{key: names.ServiceSMActive.Name, of: func(d *gpusim.DeviceTruth) float64 { return d.SMActive }, has: full, rounding: decimals},
		{key: names.ServicePodMemoryUsage.Name, of: used, has: own, added: true, rounding: oneByte},
		{key: names.ServicePodMemoryLimit.Name, of: total, has: own, added: true, rounding: oneByte},
		{key: names.ServicePodPower.Name, of: power, has: board, added: true, rounding: decimals},
		{key: names.ServiceMemoryUsage.Name, of: used, has: own, added: true, over: sumOfPods, rounding: oneByte},
		{key: names.ServiceMemoryLimit.Name, of: total, has: own, added: true, over: sumOfPods, rounding: oneByte},
		{key: names.ServicePower.Name, of: power, has: board, added: true, over: sumOfPods, rounding: decimals},
	}
}()

// averaged are the metrics that averages are in.
var averaged = func() map[string]bool {
	out := map[string]bool{}
	for i := range averages {
		metric, _, _ := strings.Cut(averages[i].key, " ")
		out[metric] = true
	}
	return out
}()

// judgeAverages compares each average with the lowest and the highest that the
// devices did since the points that may be in it. What no device reports is not
// reported either.
func (w *world) judgeAverages(e *evaluation) {
	lives := w.history.of(e.service, e.at, e.at)
	from, to := e.at.Add(-late), e.at.Add(interval/2)
	if !w.chronicle.looked(lives, from, to) {
		w.verdict.count(func() { w.verdict.averagesSkipped++ })
		return
	}
	for i := range averages {
		a := &averages[i]
		low, high, some := w.chronicle.bounds(a, lives, from, to)
		value, reported := e.values[a.key]
		switch {
		case some && !reported:
			w.verdict.violate("averages", "%s has no %s at %s, and all of its pods report", e.service, a.key, w.clock(e.at))
		case reported && !some:
			w.verdict.violate("averages", "%s has a %s of %.4f at %s, and none of its devices reports it", e.service, a.key, value, w.clock(e.at))
		case reported && (value < low-a.rounding || value > high+a.rounding):
			w.verdict.violate("averages", "%s has a %s of %.4f at %s, in truth between %.4f and %.4f", e.service, a.key, value, w.clock(e.at), low, high)
		case reported:
			w.verdict.count(func() { w.verdict.averages[a.key]++ })
		}
	}
}

// chronicle is what every device did in the last while.
type chronicle struct {
	mu     sync.Mutex
	values map[string][]reading // by node/device
}

type reading struct {
	at    time.Time
	truth gpusim.DeviceTruth
}

// remember is how long the chronicle goes back: evaluations are judged late.
const remember = 30 * time.Second

// watch reads the truth until ctx ends.
func (c *chronicle) watch(ctx context.Context, nodes []*member) {
	for {
		for _, n := range nodes {
			now := time.Now()
			for _, truth := range n.fleet.TruthAt(now).Nodes {
				c.note(n.name, now, truth.Devices)
			}
		}
		if !pause(ctx, interval/4) {
			return
		}
	}
}

func (c *chronicle) note(node string, now time.Time, devices []gpusim.DeviceTruth) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == nil {
		c.values = map[string][]reading{}
	}
	for _, d := range devices {
		key := node + " " + d.ID
		list := c.values[key]
		for len(list) > 0 && now.Sub(list[0].at) > remember {
			list = list[1:]
		}
		c.values[key] = append(list, reading{now, d})
	}
}

// looked reports whether the truth about all devices of these pods was read
// often enough in a time.
func (c *chronicle) looked(lives []life, from, to time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range lives {
		for _, id := range l.devices {
			seen := 0
			for _, r := range c.values[l.node+" "+id] {
				if !r.at.Before(from) && !r.at.After(to) {
					seen++
				}
			}
			if seen < 3*int(to.Sub(from)/interval) {
				return false
			}
		}
	}
	return len(lives) > 0
}

// bounds are the lowest and the highest that an average can be in a time, each
// pod one vote. some is false where no pod has it.
func (c *chronicle) bounds(a *average, lives []life, from, to time.Time) (low, high float64, some bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pods := 0.
	for i := range lives {
		l := &lives[i]
		var podLow, podHigh, devices float64
		for _, id := range l.devices {
			if a.has != nil && !a.has(l, id) {
				continue
			}
			least, most := math.Inf(1), math.Inf(-1)
			for j := range c.values[l.node+" "+id] {
				if r := &c.values[l.node+" "+id][j]; !r.at.Before(from) && !r.at.After(to) {
					value := a.of(&r.truth)
					least, most = min(least, value), max(most, value)
				}
			}
			podLow, podHigh, devices = podLow+least, podHigh+most, devices+1
		}
		if devices == 0 {
			continue
		}
		if !a.added {
			podLow, podHigh = podLow/devices, podHigh/devices
		}
		pods++
		switch {
		case a.over == leastOfPods && pods > 1:
			low, high = min(low, podLow), min(high, podHigh)
		case a.over == mostOfPods && pods > 1:
			low, high = max(low, podLow), max(high, podHigh)
		default:
			low, high = low+podLow, high+podHigh
		}
	}
	if a.over == meanOfPods && pods > 0 {
		low, high = low/pods, high/pods
	}
	return low, high, pods > 0
}
