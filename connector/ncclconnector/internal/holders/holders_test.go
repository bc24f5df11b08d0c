// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package holders

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// point is one of gpu.allocation.
type point struct {
	holder     Holder
	device     string
	share      float64 // NaN: the series ends
	unresolved bool
}

func metrics(all ...point) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for _, p := range all {
		rm := md.ResourceMetrics().AppendEmpty()
		p.holder.Put(rm.Resource().Attributes())
		dp := names.GPUAllocation.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
		dp.Attributes().PutStr(names.HwID, p.device)
		dp.Attributes().PutBool(names.GPUAllocationResolved, !p.unresolved)
		if math.IsNaN(p.share) {
			dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		} else {
			dp.SetDoubleValue(p.share)
		}
	}
	return md
}

// A rank's device is known only where its holder has exactly one, whole.
func TestDevice(t *testing.T) {
	pod, other, job := Holder{Namespace: "ml", Pod: "a"}, Holder{Namespace: "ml", Pod: "b"}, Holder{Job: "7"}
	nested := Holder{Namespace: "ml", Pod: "a", Job: "7"}
	for name, c := range map[string]struct {
		points []point
		want   map[Holder]string
	}{
		"nothing is known":        {nil, map[Holder]string{pod: "", job: "", {}: ""}},
		"one":                     {[]point{{pod, "G1", 1, false}, {job, "G2", 1, false}}, map[Holder]string{pod: "G1", job: "G2", other: ""}},
		"two":                     {[]point{{pod, "G1", 1, false}, {pod, "G2", 1, false}}, map[Holder]string{pod: ""}},
		"a part":                  {[]point{{pod, "G1", 0.5, false}}, map[Holder]string{pod: ""}},
		"one, and a shared one":   {[]point{{pod, "G1", 1, false}, {pod, "G2", 0.5, false}, {other, "G2", 0.5, false}}, map[Holder]string{pod: "", other: ""}},
		"not resolved":            {[]point{{pod, "node/0", 1, true}}, map[Holder]string{pod: ""}},
		"free":                    {[]point{{Holder{}, "G1", 0, false}}, map[Holder]string{{}: ""}},
		"it becomes free":         {[]point{{pod, "G1", 1, false}, {Holder{}, "G1", 0, false}}, map[Holder]string{pod: ""}},
		"it ends":                 {[]point{{pod, "G1", 1, false}, {pod, "G1", math.NaN(), false}}, map[Holder]string{pod: ""}},
		"one of two ends":         {[]point{{pod, "G1", 1, false}, {pod, "G2", 1, false}, {pod, "G1", math.NaN(), false}}, map[Holder]string{pod: "G2"}},
		"another has it now":      {[]point{{pod, "G1", 1, false}, {other, "G1", 1, false}}, map[Holder]string{pod: "", other: "G1"}},
		"a late end":              {[]point{{pod, "G1", 1, false}, {other, "G1", 1, false}, {pod, "G1", math.NaN(), false}}, map[Holder]string{other: "G1"}},
		"a job within a pod":      {[]point{{nested, "G1", 1, false}}, map[Holder]string{pod: "G1", job: ""}},
		"over the limit of three": {[]point{{pod, "G1", 1, false}, {pod, "G2", 1, false}, {pod, "G3", 1, false}, {other, "G4", 1, false}}, map[Holder]string{other: ""}},
	} {
		t.Run(name, func(t *testing.T) {
			s, now := New(3, time.Minute), time.Now()
			s.Observe(metrics(c.points...), now)
			for holder, want := range c.want {
				assert.Equal(t, want, s.Device(holder, now), holder)
			}
		})
	}
}

// What is silent is forgotten.
func TestPrune(t *testing.T) {
	s, now := New(3, time.Minute), time.Now()
	job := Holder{Job: "7"}
	s.Observe(metrics(point{job, "G1", 1, false}), now)
	got, ok := s.Job("7")
	assert.True(t, ok)
	assert.Equal(t, "7", got.ID)
	s.Prune(now.Add(time.Minute))
	assert.Equal(t, "G1", s.Device(job, now.Add(time.Minute)))
	assert.Empty(t, s.Device(job, now.Add(time.Minute+1)))
	s.Prune(now.Add(time.Minute + 1))
	_, ok = s.Job("7")
	assert.False(t, ok)
	assert.Empty(t, s.devices)
}

// A holder without a value has no attribute.
func TestPut(t *testing.T) {
	attrs := pcommon.NewMap()
	Holder{Job: "7"}.Put(attrs)
	assert.Equal(t, map[string]any{names.SlurmJobID: "7"}, attrs.AsRaw())
}
