// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

var epoch = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// result is what came of a world.
type result struct {
	evaluations int
	difference  string // the first one, "" for none
	at          at
}

// compare lets the world happen to the model and to the summary. What arrives at one
// moment is shuffled and grouped into batches by seed.
func compare(w world, seed uint64) result {
	var r result
	m := newModel(w.cfg)
	s := newSubject(w.cfg, seed)
	for i := 0; i < len(w.facts); {
		f := w.facts[i]
		n := 1
		switch {
		case f.evaluate:
			r.evaluations++
			got, fault := s.evaluate(f.at)
			want := m.evaluate(f.at)
			if fault == "" {
				fault = difference(want, got)
			}
			if fault != "" {
				r.difference, r.at = fault, f.at
				return r
			}
		case f.step != 0:
			m.offset += f.step
			s.offset += f.step
			s.summary.Shift(f.step)
		case f.pods != nil:
			m.receivePods(*f.pods, f.at)
			s.setPods(*f.pods, f.at)
		default:
			for i+n < len(w.facts) && w.facts[i+n].at == f.at && (w.facts[i+n].point != nil || w.facts[i+n].announcement != nil) {
				n++
			}
			for _, g := range w.facts[i : i+n] {
				if g.point != nil {
					m.receive(*g.point, g.at)
				} else {
					m.receiveAllocation(*g.announcement, g.at)
				}
			}
			s.observe(w.facts[i:i+n], f.at)
		}
		i += n
	}
	return r
}

// subject is the summary under test.
type subject struct {
	summary *summary.Summary
	offset  at
	random  *rand.Rand
	placed  placed
}

func newSubject(cfg summary.Config, seed uint64) *subject {
	return &subject{summary: summary.New(cfg, epoch), random: rand.New(rand.NewPCG(seed, 2))}
}

func (s *subject) wall(t at) time.Time { return epoch.Add(t + s.offset) }

// observe shuffles what arrives at one moment and cuts it into batches.
func (s *subject) observe(facts []fact, now at) {
	md := pmetric.NewMetrics()
	for _, i := range s.random.Perm(len(facts)) {
		if md.ResourceMetrics().Len() > 0 && s.random.IntN(8) == 0 {
			s.summary.Observe(md, s.wall(now))
			md = pmetric.NewMetrics()
		}
		s.append(md, facts[i])
	}
	s.summary.Observe(md, s.wall(now))
}

func (s *subject) append(md pmetric.Metrics, f fact) {
	if p := f.point; p != nil {
		fm := fieldMetrics[p.field]
		dp := s.newPoint(md, fm.metric, p.pod, p.uid, p.service, p.stamp)
		rm := md.ResourceMetrics().At(md.ResourceMetrics().Len() - 1)
		if _, is := s.placed.node[p.pod]; !is {
			putNotEmpty(rm.Resource().Attributes(), names.K8sNodeName, p.node)
		}
		putNotEmpty(dp.Attributes(), names.HwID, p.device)
		putNotEmpty(dp.Attributes(), fm.attribute, fm.value)
		switch {
		case !p.end:
			dp.SetDoubleValue(p.value)
		case math.IsNaN(p.value):
			dp.SetDoubleValue(math.NaN())
		default:
			dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		}
		return
	}
	a := f.announcement
	dp := s.newPoint(md, &names.GPUAllocation, a.pod, a.uid, a.service, a.stamp)
	rm := md.ResourceMetrics().At(md.ResourceMetrics().Len() - 1)
	putNotEmpty(rm.Resource().Attributes(), names.K8sContainerName, a.container)
	dp.Attributes().PutStr(names.HwID, a.device)
	dp.Attributes().PutStr(names.K8sResourceName, resources[deviceid.MakeOf(a.device)])
	dp.Attributes().PutBool(names.GPUAllocationResolved, a.resolved)
	if a.end || a.pod.name == "" {
		dp.SetDoubleValue(0)
	} else {
		dp.SetDoubleValue(1)
	}
}

// resources are those of the vendors' device plugins.
var resources = map[deviceid.Make]string{
	deviceid.MakeUnknown: "nvidia.com/gpu", deviceid.MakeNVIDIA: "nvidia.com/gpu", deviceid.MakeAMD: "amd.com/cpx_nps4",
	deviceid.MakeGaudi: "habana.ai/gaudi", deviceid.MakeIntelGPU: "gpu.intel.com/i915",
}

// newPoint makes a resource of its own for the point.
func (s *subject) newPoint(md pmetric.Metrics, metric *names.Metric, pod podKey, uid, service string, stamp at) pmetric.NumberDataPoint {
	rm := md.ResourceMetrics().AppendEmpty()
	attrs := rm.Resource().Attributes()
	putNotEmpty(attrs, names.K8sClusterName, pod.cluster)
	putNotEmpty(attrs, names.K8sNamespaceName, pod.namespace)
	putNotEmpty(attrs, names.K8sPodName, pod.name)
	putNotEmpty(attrs, names.K8sPodUID, uid)
	putNotEmpty(attrs, names.ServiceName, service)
	s.placed.put(attrs, pod)
	dp := metric.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
	dp.SetTimestamp(pcommon.NewTimestampFromTime(s.wall(stamp)))
	return dp
}

func (s *subject) setPods(pods []podFact, now at) {
	out := &summary.Pods{Cluster: cluster}
	for _, p := range pods {
		out.List = append(out.List, summary.Pod{
			Namespace: p.pod.namespace, Name: p.pod.name, UID: p.uid, Node: p.node, Service: p.service,
			Running: p.running, Deleted: p.deleted, Up: p.up, Started: epoch.Add(p.started), LastRun: p.lastRun,
			Devices: p.devices,
		})
	}
	s.random.Shuffle(len(out.List), func(i, j int) { out.List[i], out.List[j] = out.List[j], out.List[i] })
	s.summary.SetPods(out, s.wall(now))
}

// evaluate is what the summary emits at t, by series, and what is wrong with its form:
// every point has the time of the evaluation and the identity of its resource, an end
// is a Metric of its own, no series is duplicated.
func (s *subject) evaluate(t at) (reported map[string]float64, fault string) {
	reported = map[string]float64{}
	evaluation := s.summary.Evaluate(s.wall(t))
	now := pcommon.NewTimestampFromTime(s.wall(t))
	for _, rm := range evaluation.Metrics("0").ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				var points pmetric.NumberDataPointSlice
				if metric.Type() == pmetric.MetricTypeSum {
					points = metric.Sum().DataPoints()
				} else {
					points = metric.Gauge().DataPoints()
				}
				for _, dp := range points.All() {
					series := seriesOf(metric.Name(), dp.Attributes())
					if _, twice := reported[series]; twice {
						return nil, series + " is there twice"
					}
					if dp.Timestamp() != now {
						return nil, fmt.Sprintf("%s has the time %s", series, dp.Timestamp())
					}
					for k, v := range rm.Resource().Attributes().All() {
						if own, ok := dp.Attributes().Get(k); !ok || !own.Equal(v) {
							return nil, series + " lacks " + k
						}
					}
					switch {
					case dp.Flags().NoRecordedValue():
						reported[series] = ended
						if points.Len() > 1 {
							return nil, series + ": an end is not alone"
						}
					case dp.ValueType() == pmetric.NumberDataPointValueTypeInt:
						reported[series] = float64(dp.IntValue())
					default:
						reported[series] = dp.DoubleValue()
					}
				}
			}
		}
	}
	return reported, ""
}

func seriesOf(metric string, attrs pcommon.Map) string {
	get := func(k string) string {
		if v, ok := attrs.Get(k); ok {
			return v.AsString()
		}
		return ""
	}
	series := serviceKey{get(names.K8sClusterName), get(names.K8sNamespaceName) + get(names.ServiceNamespace), get(names.ServiceName)}.String()
	if slurm := get(names.SlurmClusterName); slurm != "" {
		series = slurm + " " + series
	}
	if pod := get(names.K8sPodName) + get(names.SlurmJobID); pod != "" {
		series += "/" + pod
	}
	series += " " + metric
	for _, k := range []string{names.GPUPodState, names.GPUDeviceState, names.GPUPipe} {
		if v := get(k); v != "" {
			series += " " + v
		}
	}
	return series
}

func putNotEmpty(m pcommon.Map, key, value string) {
	if value != "" {
		m.PutStr(key, value)
	}
}

// fieldMetrics is the metric of each field and the attribute that selects it.
var fieldMetrics = [numSamples + 1]struct {
	metric           *names.Metric
	attribute, value string
}{
	utilization:  {&names.GPUUtilization, names.HwGPUTask, "general"},
	smActive:     {&names.GPUSMActive, "", ""},
	dramActive:   {&names.GPUDRAMActive, "", ""},
	tensorActive: {&names.GPUPipeActive, names.GPUPipe, "tensor"},
	fp16Active:   {&names.GPUPipeActive, names.GPUPipe, "fp16"},
	fp32Active:   {&names.GPUPipeActive, names.GPUPipe, "fp32"},
	memoryUsage:  {&names.GPUMemoryUsage, "", ""},
	memoryLimit:  {&names.GPUMemoryLimit, "", ""},
	power:        {&names.HwPower, "", ""},
	suspended:    {&names.GPUDeviceSuspended, "", ""},
	stillness:    {&names.ExporterFrozen, "", ""},
}
