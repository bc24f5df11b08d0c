// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package seendevices

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const lasts = 45 * time.Second

var now = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// point is one of a metric, with attributes in pairs.
type point struct {
	metric *names.Metric
	attrs  []string
}

func metrics(device string, points ...point) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	if device != "" {
		rm.Resource().Attributes().PutStr(names.HwID, device)
	}
	sm := rm.ScopeMetrics().AppendEmpty()
	for _, of := range points {
		p := of.metric.Init(sm.Metrics().AppendEmpty()).AppendEmpty()
		p.SetIntValue(1)
		p.Attributes().PutStr(names.HwID, device)
		for i := 0; i < len(of.attrs); i += 2 {
			if of.attrs[i] == names.GPUXIDCode {
				p.Attributes().PutInt(of.attrs[i], int64(len(of.attrs[i+1])))
			} else {
				p.Attributes().PutStr(of.attrs[i], of.attrs[i+1])
			}
		}
	}
	return md
}

func TestCut(t *testing.T) {
	general, encoder := []string{names.HwGPUTask, "general"}, []string{names.HwGPUTask, "encoder"}
	io := []string{names.NetworkDirection, "transmit", names.GPUIOLink, "nvlink"}
	oi := []string{names.GPUIOLink, "nvlink", names.NetworkDirection, "transmit"}
	for name, c := range map[string]struct {
		device string
		point  point
		after  time.Duration
		cut    int
	}{
		"the same":                   {"GPU-a", point{&names.HwPower, nil}, lasts, 1},
		"later":                      {"GPU-a", point{&names.HwPower, nil}, lasts + 1, 0},
		"another device":             {"GPU-b", point{&names.HwPower, nil}, 0, 0},
		"its instance":               {"GPU-a/1", point{&names.HwPower, nil}, 0, 0},
		"no device":                  {"", point{&names.HwPower, nil}, 0, 0},
		"another metric":             {"GPU-a", point{&names.HwEnergy, nil}, 0, 0},
		"the same attribute":         {"GPU-a", point{&names.GPUUtilization, general}, 0, 1},
		"another attribute":          {"GPU-a", point{&names.GPUUtilization, encoder}, 0, 0},
		"in another order":           {"GPU-a", point{&names.GPUIO, oi}, 0, 1},
		"any code is its count":      {"GPU-a", point{&names.GPUXIDErrors, []string{names.GPUXIDCode, "31"}}, 0, 1},
		"a lower bound is not exact": {"GPU-c", point{&names.GPUXIDErrors, []string{names.GPUXIDCode, "79"}}, 0, 0},
		"what only one receives":     {"GPU-a", point{&names.GPUDeviceSuspended, nil}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var r Registry
			r.Join()
			r.Emitted(metrics("GPU-a", point{&names.HwPower, nil}, point{&names.GPUUtilization, general}, point{&names.GPUIO, io},
				point{&names.GPUXIDErrors, []string{names.GPUXIDCode, "7"}}), now, lasts)
			r.Emitted(metrics("GPU-c", point{&names.GPUXIDErrors, []string{names.GPUXIDCode, "79", names.GPUXIDDerived, "true"}}), now, lasts)
			md := metrics(c.device, c.point, point{&names.GPUFabricStatus, nil})
			assert.Equal(t, c.cut, r.Cut(md, now.Add(c.after)))
			assert.Equal(t, 2-c.cut, md.MetricCount())
		})
	}
	var r Registry
	r.Join()
	r.Emitted(metrics("GPU-a", point{&names.HwPower, nil}), now, lasts)
	md := metrics("GPU-a", point{&names.HwPower, nil})
	assert.Equal(t, 1, r.Cut(md, now))
	assert.Zero(t, md.ResourceMetrics().Len(), "a device without metrics")
	r.Emitted(metrics("GPU-b", point{&names.HwPower, nil}), now.Add(time.Hour), lasts)
	assert.Len(t, r.emitted, 1, "what is old is not kept")
}

// TestAlone: without a receiver that leaves series to others nothing is noted.
func TestAlone(t *testing.T) {
	var r Registry
	r.Emitted(metrics("GPU-a", point{&names.HwPower, nil}), now, lasts)
	r.CountsXIDs("GPU-a", now, lasts)
	assert.Zero(t, r.Cut(metrics("GPU-a", point{&names.HwPower, nil}), now))
	assert.False(t, r.XIDsCounted("GPU-a", now))
}

func TestXIDsCounted(t *testing.T) {
	var r Registry
	r.Join()
	r.CountsXIDs("GPU-a", now, lasts)
	assert.True(t, r.XIDsCounted("GPU-a", now.Add(lasts)))
	assert.False(t, r.XIDsCounted("GPU-a", now.Add(lasts+1)))
	assert.False(t, r.XIDsCounted("GPU-a/1", now))
}

func TestConcurrentUse(t *testing.T) {
	var r Registry
	r.Join()
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 50 {
				r.Emitted(metrics("GPU-a", point{&names.HwPower, nil}), now, lasts)
				r.Cut(metrics("GPU-a", point{&names.HwPower, nil}), now)
				r.CountsXIDs("GPU-a", now, lasts)
				r.XIDsCounted("GPU-a", now)
			}
		})
	}
	wait.Wait()
}
