// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

const (
	perNode  = 8 // GPUs of a node; a service has one node, each of its pods one GPU
	interval = 15 * time.Second
	history  = 24 * time.Hour
)

type tags = map[string]string

// one is a series and how its value goes.
type one struct {
	labels labels.Labels
	from   float64
	spread float64 // 0 is a value that never changes
}

// node is every series of a node, its GPUs and the service that they serve: what
// the page asks for, and nothing else that an exporter reports.
func node(n int) []one {
	name, service := fmt.Sprintf("node-%04d", n), fmt.Sprintf("model-%04d", n)
	var all []one
	add := func(from, spread float64, metric string, more ...tags) {
		l := map[string]string{model.MetricNameLabel: metric, queries.Cluster: "prod"}
		for _, m := range more {
			maps.Copy(l, m)
		}
		all = append(all, one{labels.FromMap(l), from, spread})
	}
	exporter := tags{queries.Node: name, queries.Address: name, queries.Port: "9400"}
	add(1, 0, queries.ExporterUp, exporter)
	add(0, 0, queries.Frozen, exporter)
	add(1, 0, queries.Schedulable, tags{queries.Node: name})
	for i := range perNode {
		pod := tags{queries.Namespace: "inference", queries.Service: service, queries.Pod: fmt.Sprintf("%s-%d", service, i)}
		d := tags{
			queries.Node: name, queries.Device: fmt.Sprintf("GPU-%08d-0000-4000-8000-%012d", n, i), queries.Index: fmt.Sprint(i),
			queries.Model: "NVIDIA H200", queries.Container: "server",
		}
		maps.Copy(d, pod)
		add(0.2, 0.7, queries.Utilization, d, tags{queries.Task: "general"})
		add(40<<30, 80<<30, queries.MemoryUsage, d)
		add(141<<30, 0, queries.MemoryLimit, d)
		for _, pipe := range []string{"tensor", "fp16", "fp32"} {
			add(0.1, 0.5, queries.PipeActive, d, tags{queries.Pipe: pipe})
		}
		add(0.2, 0.6, queries.SMActive, d)
		add(0.1, 0.4, queries.DRAMActive, d)
		add(200, 450, queries.Power, d, tags{"hw_type": "gpu"})
		add(700, 0, queries.PowerLimit, d, tags{queries.LimitKind: "enforced"})
		add(50, 30, queries.Temperature, d, tags{queries.Sensor: "gpu", "hw_type": "gpu"})
		add(50, 40, queries.Temperature, d, tags{queries.Sensor: "memory", "hw_type": "gpu"})
		add(0, 0, queries.Throttle, d, tags{queries.Reason: "sw_power_cap"})
		add(0, 0, queries.XIDLast, d)
		add(0, 0, queries.HwErrors, d, tags{queries.ErrorType: "uncorrected"})
		add(1, 0, queries.Allocation, d, tags{queries.Source: "pod_resources", queries.Sharing: "none", queries.Resolved: "true"})
		add(1, 0, queries.PodState, pod, tags{queries.StateOfPod: "reporting"})
		if n%8 == 0 && i == 0 {
			add(3, 0, queries.XIDErrors, d, tags{queries.XIDCode: "94"})
		}
	}
	s := tags{queries.Namespace: "inference", queries.Service: service}
	figures := map[string]one{
		queries.ServiceUtilization: {from: 0.4, spread: 0.3}, queries.ServiceUtilizationMin: {from: 0.2, spread: 0.1}, queries.ServiceUtilizationMax: {from: 0.8, spread: 0.1},
		queries.ServiceSM: {from: 0.4, spread: 0.3}, queries.ServiceDRAM: {from: 0.2, spread: 0.3},
		queries.ServicePodMemory: {from: 70 << 30, spread: 10 << 30}, queries.ServicePodLimit: {from: 141 << 30}, queries.ServicePodPower: {from: 400, spread: 100},
		queries.ServiceMemory: {from: 560 << 30, spread: 80 << 30}, queries.ServiceLimit: {from: 1128 << 30}, queries.ServicePower: {from: 3200, spread: 800},
		queries.ServicePending: {}, queries.ServiceIdle: {}, queries.ServiceMissingRatio: {}, queries.ServicePartial: {}, queries.ServiceDataAge: {from: 2, spread: 5},
	}
	for _, metric := range slices.Sorted(maps.Keys(figures)) {
		add(figures[metric].from, figures[metric].spread, metric, s)
	}
	for _, pipe := range []string{"tensor", "fp16", "fp32"} {
		add(0.1, 0.4, queries.ServicePipe, s, tags{queries.Pipe: pipe})
	}
	for _, state := range []string{"reporting", "degraded", "missing", "warming", "not_running"} {
		pods := 0.0
		if state == "reporting" {
			pods = perNode
		}
		add(pods, 0, queries.ServicePods, s, tags{queries.StateOfPod: state})
	}
	add(perNode, 0, queries.ServiceDevices, s, tags{queries.StateOfDevice: "reporting"})
	add(0, 0, queries.ServiceDevices, s, tags{queries.StateOfDevice: "missing"})
	return all
}

// fleet is every series of so many GPUs.
func fleet(gpus int) []one {
	var all []one
	for n := range gpus / perNode {
		all = append(all, node(n)...)
	}
	return all
}

// batch gives series their samples at some times.
func batch(series []one, times []time.Time) []store.Series {
	out := make([]store.Series, len(series))
	samples := make([]store.Sample, len(series)*len(times))
	for i, s := range series {
		mine := samples[i*len(times) : (i+1)*len(times)]
		for j, at := range times {
			mine[j] = store.Sample{Time: at.UnixMilli(), Value: s.from + s.spread*float64((at.Unix()/15*7+int64(s.labels.Hash()%1000))%1000)/1000}
		}
		out[i] = store.Series{Labels: s.labels, Samples: mine}
	}
	return out
}

// times are those of a day's samples.
func times(end time.Time) []time.Time {
	var all []time.Time
	for at := end.Add(-history); !at.After(end); at = at.Add(interval) {
		all = append(all, at)
	}
	return all
}
