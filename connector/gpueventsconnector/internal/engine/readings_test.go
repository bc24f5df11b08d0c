// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/devicerules"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// options run the rules of both sets with these events; all rules without any.
func options(events ...string) Options {
	o := Options{
		Devices: true, Services: true, Rules: map[string]rule.Settings{}, MaxSubjects: 10,
		Staleness: 45 * time.Second, SubjectTTL: 24 * time.Hour, RestoredTTL: 15 * time.Minute,
	}
	for _, r := range rules.All() {
		if o.Rules[r.Event] = r.Defaults(); len(events) > 0 {
			o.Rules[r.Event][rule.Enabled] = false
		}
	}
	for _, e := range events {
		o.Rules[e][rule.Enabled] = true
	}
	return o
}

// A rule that is on reads its metrics and no others.
func TestInputsAreThoseOfTheRules(t *testing.T) {
	for _, r := range rules.All() {
		e := New(options(r.Event))
		reads := map[string]bool{}
		for _, in := range r.Reads {
			reads[in.Metric.Name] = true
		}
		for _, other := range rules.All() {
			for _, in := range other.Reads {
				read := e.inputs.table.Get(in.Metric.Name) != nil
				require.Equal(t, reads[in.Metric.Name], read, "%s, %s", r.Event, in.Metric.Name)
			}
		}
	}
}

// Points of the dcgm receiver about real pages are read.
func TestPagesOfTheReceiver(t *testing.T) {
	for file, want := range map[string]struct{ gpus, instances int }{
		"h100.prom.yaml": {2, 0}, "a100-mig.prom.yaml": {2, 3}, "shared-4.6.prom.yaml": {2, 0},
	} {
		t.Run(file, func(t *testing.T) {
			md, err := golden.ReadMetrics(filepath.Join("..", "..", "..", "..", "receiver", "dcgmreceiver", "testdata", "pages", file))
			require.NoError(t, err)
			o := options()
			o.Services = false
			e := New(o)
			reading := func(d *device, of string, i int) float64 {
				for _, w := range e.devices.conditions {
					if w.event == of {
						return devicerules.Readings{Values: d.values, Index: w.places}.At(i)
					}
				}
				t.Fatal(of)
				return 0
			}
			now := time.Now()
			e.Consume(md, now)
			e.Tick(now.Add(2 * time.Second))
			require.Zero(t, e.TakeCounts())
			require.Len(t, e.exporters.all, 1)
			var gpus, instances int
			for _, d := range e.devices.all {
				require.Positive(t, reading(d, names.EventMemoryPressure, 1), "memory")
				require.Less(t, reading(d, names.EventMemoryPressure, 2), 1.)
				if d.Facts.Parent != "" {
					instances++
					continue
				}
				gpus++
				require.Equal(t, file == "shared-4.6.prom.yaml", math.IsNaN(reading(d, names.EventTemperature, 0)), "temperature")
				throttled, ecc := reading(d, names.EventThrottle, 0), d.values[e.devices.counted[0].places[0]]
				require.Equal(t, file == "h100.prom.yaml", throttled == 0 && ecc == 0, "what the page has")
				for _, x := range e.exporters.all {
					require.Equal(t, x.id, d.exporter)
				}
			}
			require.Equal(t, want, struct{ gpus, instances int }{gpus, instances})
		})
	}
}

// A device that is on another node each time leaves nothing behind on the last.
func TestSitesAreBounded(t *testing.T) {
	e := New(options())
	now := time.Now()
	for i := range 5000 {
		for _, node := range []string{"", fmt.Sprint("n", i)} {
			md := pmetric.NewMetrics()
			rm := md.ResourceMetrics().AppendEmpty()
			event.PutTexts(rm.Resource().Attributes(), names.HwID, "GPU-a", names.K8sNodeName, node)
			p := names.GPUUtilization.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
			p.SetDoubleValue(0.5)
			p.SetTimestamp(pcommon.NewTimestampFromTime(now))
			e.Consume(md, now)
		}
		now = now.Add(time.Second)
	}
	require.LessOrEqual(t, len(e.devices.sites), 2)
}
