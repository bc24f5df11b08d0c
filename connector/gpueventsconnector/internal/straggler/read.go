// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// Reads are the metrics of boards that are compared, and those that explain the result.
var Reads = []rule.Input{
	{Metric: &names.GPUClockFrequency}, {Metric: &names.GPUUtilization}, {Metric: &names.GPUPowerLimit},
	{Metric: &names.GPUThrottleActive}, {Metric: &names.GPUThrottleDuration}, {Metric: &names.GPUHealthReason},
}

// take reads a point of a metric.
type take func(b *Board, p pmetric.NumberDataPoint, v float64)

var takes = func() (t names.Table[take]) {
	t.Put(names.GPUClockFrequency.Name, takeClock)
	t.Put(names.GPUUtilization.Name, takeBusy)
	t.Put(names.GPUPowerLimit.Name, takeLimit)
	t.Put(names.GPUThrottleActive.Name, takeThrottle)
	t.Put(names.GPUThrottleDuration.Name, takeDuration)
	return t
}()

func takeClock(b *Board, p pmetric.NumberDataPoint, v float64) {
	if points.Str(p.Attributes(), names.GPUClockDomain) == "sm" {
		b.open.clock = v
	}
}

func takeBusy(b *Board, p pmetric.NumberDataPoint, v float64) {
	if points.Str(p.Attributes(), names.HwGPUTask) == "general" {
		b.open.busy = v
	}
}

func takeLimit(b *Board, p pmetric.NumberDataPoint, v float64) {
	kind := 0
	if points.Str(p.Attributes(), names.GPUPowerLimitKind) != "enforced" {
		kind = 1
	}
	b.limits[kind] = math.Round(v)
}

// takeThrottle takes whether a reason holds the clocks down. It is as good as a duration
// where there are many samples.
func takeThrottle(b *Board, p pmetric.NumberDataPoint, v float64) {
	if v <= 0 {
		return
	}
	switch points.Str(p.Attributes(), names.GPUThrottleReason) {
	case names.ThrottleHWThermal, names.ThrottleSWThermal:
		b.open.throttled[byHeat] = 1
	case names.ThrottleHWPowerBrake, "power_cap":
		b.open.throttled[byPower] = 1
	}
}

// duration is the last point of a counter of seconds.
type duration struct {
	at      pcommon.Timestamp
	seconds float64
}

func takeDuration(b *Board, p pmetric.NumberDataPoint, v float64) {
	kind := byHeat
	switch points.Str(p.Attributes(), names.GPUThrottleReason) {
	case "thermal":
	case "power":
		kind = byPower
	default:
		return
	}
	last := &b.durations[kind]
	if passed := time.Duration(p.Timestamp() - last.at).Seconds(); last.at != 0 && p.Timestamp() > last.at && v >= last.seconds {
		b.open.throttled[kind] = max(b.open.throttled[kind], min(1, (v-last.seconds)/passed))
	}
	*last = duration{p.Timestamp(), v}
}

// Consume reads a batch. Points without a board or a number are nothing to compare.
func (f *Fleet) Consume(md pmetric.Metrics, now time.Duration, wall time.Time) {
	f.now, f.wall = now, wall
	for _, rm := range md.ResourceMetrics().All() {
		var b *Board
		found := false
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() == names.GPUHealthReason.Name {
					f.takeReasons(rm.Resource().Attributes(), m)
					continue
				}
				read := takes.Get(m.Name())
				if read == nil {
					continue
				}
				dps, ok := points.Numbers(m)
				if !ok {
					continue
				}
				if !found {
					found = true
					b = f.of(rm.Resource().Attributes())
				}
				if b == nil {
					continue
				}
				for _, p := range dps.All() {
					if v := points.Value(p); !math.IsNaN(v) && !math.IsInf(v, 0) && v >= 0 && b.openAt(p.Timestamp(), now) {
						read(b, p, v)
						if b.rare >= leastSamples {
							f.apart = max(f.apart, b.apart)
						}
					}
				}
			}
		}
	}
}

// of finds the board of a resource; nil: the resource is no board, or there is no room for it. An
// instance of MIG or a replica only shows that its board is divided.
func (f *Fleet) of(attrs pcommon.Map) *Board {
	var id subject.DeviceID
	var parent, start string
	facts := subject.Facts{Index: -1}
	for k, v := range attrs.All() {
		if k == names.GPUIndex && v.Type() == pcommon.ValueTypeInt {
			facts.Index = v.Int()
		}
		if v.Type() != pcommon.ValueTypeStr {
			continue
		}
		to := (*string)(nil)
		switch k {
		case names.HwID:
			to = &id.ID
		case names.K8sClusterName:
			to = &id.Cluster
		case names.HwParent:
			to = &parent
		case names.HwType:
			if v.Str() != names.HwTypeGPU {
				return nil
			}
		case names.K8sNodeName:
			to = &facts.Node
		case names.HostName:
			to = &facts.Host
		case names.HwModel:
			to = &facts.Model
		case names.GPUPCIAddress:
			to = &facts.PCI
		case names.K8sNamespaceName:
			to = &facts.Owner.Namespace
		case names.K8sPodName:
			to = &facts.Owner.Pod
		case names.K8sContainerName:
			to = &facts.Owner.Container
		case names.ServiceName:
			to = &facts.Owner.Service
		case names.K8sPodStartTime:
			to = &start
		default:
			to = facts.Owner.Job.Text(k)
		}
		if to != nil {
			*to = event.Bounded(v.Str())
		}
	}
	if facts.Owner.Job.ID == "" {
		facts.Owner.Job = subject.Job{}
	}
	if whole, replica := deviceid.CutReplica(id.ID); replica != "" {
		parent = whole
	}
	if parent != "" {
		if b := f.boards[subject.DeviceID{Cluster: id.Cluster, ID: parent}]; b != nil {
			b.divided = f.now
		}
		return nil
	}
	if id.ID == "" {
		return nil
	}
	b := f.get(id)
	if b != nil {
		b.present(&facts, start, f.now, f.wall)
	}
	return b
}

// takeReasons takes the reasons against a board, as its agent publishes them.
func (f *Fleet) takeReasons(resource pcommon.Map, m pmetric.Metric) {
	dps, _ := points.Numbers(m)
	for _, p := range dps.All() {
		name := points.Str(p.Attributes(), names.GPUHealthReason.Name)
		if _, explains := explaining[name]; !explains {
			continue
		}
		b := f.boards[subject.DeviceID{Cluster: points.Str(resource, names.K8sClusterName), ID: points.Str(resource, names.HwID)}]
		switch {
		case b == nil:
		case points.Value(p) > 0: // an end is no number
			if b.reasons == nil {
				b.reasons = map[string]time.Duration{}
			}
			b.reasons[strings.Clone(name)] = f.now
		default:
			delete(b.reasons, name)
		}
	}
}
