// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Expected is gpu.request.size where it is what pods requested of late.
const Expected = "expected"

// states are the values of gpu.node.device.state.
var states = [...]string{"allocatable", "requested", "free", "stranded"}

// Put writes the figures of now. perNode is whether those of single nodes are written.
func (f *Figures) Put(ms pmetric.MetricSlice, now time.Time, perNode bool) {
	at := pcommon.NewTimestampFromTime(now)
	series := func(m *names.Metric) func() pmetric.NumberDataPoint {
		var points pmetric.NumberDataPointSlice
		return func() pmetric.NumberDataPoint {
			if points == (pmetric.NumberDataPointSlice{}) {
				points = m.Init(ms.AppendEmpty())
			}
			p := points.AppendEmpty()
			p.SetTimestamp(at)
			return p
		}
	}
	if perNode {
		f.putNodes(series(&names.NodeDevices))
	}
	f.putKinds(series(&names.SchedulingStranded), series(&names.SchedulingFit), series(&names.SchedulingFragmentation))
	pods, devices, age := series(&names.SchedulingPendingPods), series(&names.SchedulingPending), series(&names.SchedulingPendingAge)
	for _, w := range f.Waiting {
		for _, value := range []struct {
			n int
			p pmetric.NumberDataPoint
		}{{w.Pods, pods()}, {w.Devices, devices()}} {
			value.p.SetIntValue(int64(value.n))
			w.Put(value.p.Attributes())
			value.p.Attributes().PutStr(names.GPUPendingReason, string(w.Reason))
			value.p.Attributes().PutStr(names.K8sResourceName, w.Resource)
		}
	}
	for _, o := range f.Oldest {
		p := age()
		p.SetDoubleValue(o.Age.Seconds())
		o.Put(p.Attributes())
		p.Attributes().PutStr(names.GPUPendingReason, string(o.Reason))
	}
}

func (k Kind) put(attrs pcommon.Map) {
	attrs.EnsureCapacity(4)
	attrs.PutStr(names.K8sResourceName, k.Resource)
	if k.Model != "" {
		attrs.PutStr(names.HwModel, k.Model)
	}
}

func (f *Figures) putNodes(next func() pmetric.NumberDataPoint) {
	for i := range f.Nodes {
		n := &f.Nodes[i]
		for state, value := range [len(states)]int{n.Allocatable, n.Requested, n.Free, n.Stranded} {
			p := next()
			p.SetIntValue(int64(value))
			n.put(p.Attributes())
			p.Attributes().PutStr(names.K8sNodeName, n.Node)
			p.Attributes().PutStr(names.GPUNodeDeviceState, states[state])
		}
	}
}

func (f *Figures) putKinds(stranded, fit, fragmentation func() pmetric.NumberDataPoint) {
	for i := range f.Kinds {
		k := &f.Kinds[i]
		for reason, n := range k.Stranded {
			p := stranded()
			p.SetIntValue(int64(n))
			k.put(p.Attributes())
			p.Attributes().PutStr(names.GPUStrandedReason, Stranded(reason).String())
		}
		part := func(size string, value float64) {
			if math.IsNaN(value) {
				return
			}
			p := fragmentation()
			p.SetDoubleValue(value)
			k.put(p.Attributes())
			p.Attributes().PutStr(names.GPURequestSize, size)
		}
		for i, r := range Sizes {
			p := fit()
			p.SetIntValue(int64(k.Fit[i]))
			k.put(p.Attributes())
			p.Attributes().PutStr(names.GPURequestSize, strconv.Itoa(r))
			part(strconv.Itoa(r), k.Fragmentation[i])
		}
		part(Expected, k.Expected)
	}
}
