// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/history"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// average is a field of a service that is made of what its devices do.
type average struct {
	key string // averageKey
	of  func(*gpusim.DeviceTruth) float64
	// has reports whether a pod's telemetry has it of a device; nil: always.
	has func(l *history.Life, device string) bool
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

const (
	wholePercent = 0.0051 // GPU_UTIL has no decimals
	decimals     = 1e-5   // what is printed with six of them
	oneByte      = 1
	mib          = 1 << 20
)

// averages are all that the simulated exporters make knowable.
var averages = func() []average {
	full := func(l *history.Life, _ string) bool { return l.Node == fleet.FullPages }
	// What a replica of a shared GPU uses of its memory and power is not reported.
	own := func(l *history.Life, _ string) bool { return !l.Shared }
	// The power of a MIG instance neither.
	board := func(l *history.Life, device string) bool { return !l.Shared && !strings.Contains(device, "/") }
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

// averages compares each average with the lowest and the highest that the
// devices did since the points that may be in it. What no device reports is not
// reported either.
func (j *Judge) averages(e *Evaluation) {
	lives := j.History.Of(e.Service, e.At, e.At)
	from, to := e.At.Add(-pace.Late), e.At.Add(pace.Interval/2)
	if !j.Chronicle.looked(lives, from, to) {
		j.verdict.Count(func(c *Counts) { c.AveragesSkipped++ })
		return
	}
	at := j.clock(e.At)
	for i := range averages {
		a := &averages[i]
		low, high, some := j.Chronicle.bounds(a, lives, from, to)
		value, reported := e.values[a.key]
		switch {
		case some && !reported:
			j.verdict.Violate("averages", "%s has no %s at %s, and all of its pods report", e.Service, a.key, at)
		case reported && !some:
			j.verdict.Violate("averages", "%s has a %s of %.4f at %s, and none of its devices reports it", e.Service, a.key, value, at)
		case reported && (value < low-a.rounding || value > high+a.rounding):
			j.verdict.Violate("averages", "%s has a %s of %.4f at %s, in truth between %.4f and %.4f", e.Service, a.key, value, at, low, high)
		case reported:
			j.verdict.Count(func(c *Counts) { c.Averages[a.key]++ })
		}
	}
}
