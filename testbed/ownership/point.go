// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Owner is a container that holds a device. The zero value is no owner.
type Owner struct {
	Namespace, Pod, Container string
	UID                       string // of the pod; empty where it is not known
}

// Is reports whether both are the same container. A uid that one of them does
// not know decides nothing.
func (h Owner) Is(o Owner) bool {
	return h.Namespace == o.Namespace && h.Pod == o.Pod && h.Container == o.Container &&
		(h.UID == "" || o.UID == "" || h.UID == o.UID)
}

func (h Owner) String() string {
	if h == (Owner{}) {
		return "nobody"
	}
	s := h.Namespace + "/" + h.Pod + "/" + h.Container
	if h.UID != "" {
		s += " (" + h.UID + ")"
	}
	return s
}

// described are the attributes of a resource that describe a device, and can change
// while it stays the same.
var described = []string{names.HostName, names.HwModel, names.HwDriverVersion, names.GPUIndex, names.GPUPCIAddress, names.GPUMIGProfile}

// Point is one data point as it arrived.
type Point struct {
	Arrived time.Time
	Time    time.Time
	Metric  string
	Node    string
	Device  string // hw.id; empty: not about a device
	Parent  string // hw.parent; empty: a physical device
	Owner   Owner
	Service string
	Started string // when the owner's pod started; empty where it is not known
	// Description is what the resource has about the device beside hw.id, "key=value"
	// with a newline behind each: another one is another series.
	Description string
	Value       float64
	Ended       bool // a marker: it ends the series and has no value
	// Attributes are those of the point but for hw.id, "key=value" in the order
	// of the keys, with a newline behind each.
	Attributes string
}

// Attribute is the value of a point attribute, "" where there is none.
func (p *Point) Attribute(key string) string {
	for line := range strings.Lines(p.Attributes) {
		if v, ok := strings.CutPrefix(line, key+"="); ok {
			return strings.TrimSuffix(v, "\n")
		}
	}
	return ""
}

// flatten appends every number point of md. Strings are shared through intern.
func flatten(to []Point, md pmetric.Metrics, arrived time.Time, intern func(string) string) []Point {
	for _, rm := range md.ResourceMetrics().All() {
		r := rm.Resource().Attributes()
		get := func(key string) string {
			if v, ok := r.Get(key); ok {
				return intern(v.AsString())
			}
			return ""
		}
		var description strings.Builder
		for _, key := range described {
			if value := get(key); value != "" {
				description.WriteString(key + "=" + value + "\n")
			}
		}
		common := Point{
			Description: intern(description.String()),
			Arrived:     arrived,
			Node:        get(names.K8sNodeName),
			Parent:      get(names.HwParent),
			Service:     get(names.ServiceName),
			Started:     get(names.K8sPodStartTime),
			Owner: Owner{
				Namespace: get(names.K8sNamespaceName), Pod: get(names.K8sPodName),
				Container: get(names.K8sContainerName), UID: get(names.K8sPodUID),
			},
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for _, dp := range numbers(m).All() {
					p := common
					p.Metric = intern(m.Name())
					p.Time = dp.Timestamp().AsTime()
					p.Ended = dp.Flags().NoRecordedValue()
					p.Value = dp.DoubleValue()
					if dp.ValueType() == pmetric.NumberDataPointValueTypeInt {
						p.Value = float64(dp.IntValue())
					}
					if id, ok := dp.Attributes().Get(names.HwID); ok {
						p.Device = intern(id.AsString())
					}
					if parent, ok := dp.Attributes().Get(names.HwParent); ok {
						p.Parent = intern(parent.AsString())
					}
					p.Attributes = intern(canonical(dp.Attributes()))
					to = append(to, p)
				}
			}
		}
	}
	return to
}

func numbers(m pmetric.Metric) pmetric.NumberDataPointSlice {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints()
	default:
		return pmetric.NewNumberDataPointSlice()
	}
}

func canonical(attributes pcommon.Map) string {
	lines := make([]string, 0, attributes.Len())
	for k, v := range attributes.All() {
		if k != names.HwID {
			lines = append(lines, k+"="+v.AsString()+"\n")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
