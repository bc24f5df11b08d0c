// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// allocations is what the kubelet of n1 lists: devices with the share that a pod has.
func allocations(listed map[string]float64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	event.PutTexts(rm.Resource().Attributes(), names.K8sClusterName, "c1", names.K8sNodeName, "n1")
	points := names.GPUAllocation.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty())
	for id, share := range listed {
		p := points.AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		p.SetDoubleValue(share)
		p.Attributes().PutStr(names.HwID, id)
	}
	return md
}

// Some versions of dcgm-exporter print devices with an owner alone, as soon as there is one
// (dcgm-exporter#549, #569, #611, #644). Those that leave the page then are not lost.
func TestAnExporterOfHeldDevicesOnly(t *testing.T) {
	const first, second, third = "GPU-1", "GPU-2", "GPU-3"
	idle := func(ids ...string) (some []gpu) {
		for i, id := range ids {
			g := gpusOf(id)[0]
			g.index = int64(10 + i)
			some = append(some, g)
		}
		return some
	}
	held := func(ids ...string) []gpu {
		some := idle(ids...)
		for i := range some {
			some[i].pod = "chat-0"
		}
		return some
	}
	replica := idle(first)
	replica = append(replica, gpu{id: first + "::0", parent: first, index: 10, pod: "chat-0"})
	part := idle(first)
	part = append(part, gpu{id: first + "/7", parent: first, index: 10, pod: "chat-0"})
	all := idle(first, second, third)
	free := map[string]float64{first: 1, second: 0, third: 0}
	for name, tt := range map[string]struct {
		before, after []gpu
		listed        map[string]float64
		back          []gpu // afterwards
		lost, notices int
	}{
		"a pod starts":                      {before: all, after: held(first), notices: 1},
		"and ends":                          {before: all, after: held(first), back: all, notices: 1},
		"and others start":                  {before: all, after: held(first), back: held(first, second), notices: 1},
		"and another takes its place":       {before: all, after: held(first), back: held(third), notices: 1},
		"a shared board":                    {before: all, after: replica, notices: 1},
		"a MIG instance":                    {before: all, after: part, notices: 1},
		"the kubelet lists them":            {before: all, after: held(first), listed: free, notices: 1},
		"one of two, and the kubelet":       {before: idle(first, second), after: held(first), listed: free, notices: 1},
		"a pod ends, and the kubelet":       {before: held(first, second), after: held(first), listed: free, notices: 1},
		"all leave the page":                {before: all, after: nil, lost: 3},
		"one of two, and no kubelet":        {before: idle(first, second), after: held(first), lost: 1},
		"one that remains has no owner":     {before: all, after: idle(first), lost: 2},
		"so it is although they are listed": {before: all, after: idle(first), listed: free, lost: 2},
		"one with an owner":                 {before: held(first, second), after: held(first), lost: 1},
		"and the kubelet knows of it":       {before: held(first, second, third), after: held(first), listed: map[string]float64{second: 1, third: 1}, lost: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, deviceSet, withHealth)
				var lost, health int
				see := func(n int, gpus []gpu) {
					for range n {
						events := b.feed(scrape(page{at: time.Now(), node: "n1", gpus: gpus}))
						if tt.listed != nil {
							events = append(events, b.feed(allocations(tt.listed))...)
						}
						for _, e := range append(events, b.wait(15*time.Second)...) {
							switch {
							case e.state != names.EventRaised:
							case e.record.EventName() == names.EventDeviceLost:
								lost++
							case e.record.EventName() == names.EventHealth:
								health++
								assert.NotZero(t, tt.lost, e.body)
							}
						}
					}
				}
				see(4, tt.before)
				see(12, tt.after)
				if tt.back != nil {
					see(12, tt.back)
				}
				assert.Equal(t, tt.lost, lost)
				notices := 0
				for _, entry := range b.logs.All() {
					if strings.HasPrefix(entry.Message, "GPUs without an owner are not on the exporter's page") {
						notices++
						assert.Equal(t, "n1", entry.ContextMap()["node"])
					}
				}
				assert.Equal(t, tt.notices, notices)
			})
		})
	}
}
