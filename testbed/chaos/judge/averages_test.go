// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/history"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// averageCase has a service mixed: a pod on two GPUs of a full page, one on a
// MIG instance, one on a replica of a shared GPU. What they do goes up a second
// ago.
func averageCase() (j *Judge, now time.Time, finds func(e *Evaluation) string) {
	j, out, now := newCase()
	born := now.Add(-time.Minute)
	for _, p := range []struct {
		node     string
		devices  []string
		shared   bool
		capacity int
	}{
		{fleet.FullPages, []string{"GPU-1", "GPU-2"}, false, 100},
		{"b", []string{"GPU-3/1"}, false, 10},
		{"c", []string{"GPU-4"}, true, 100},
	} {
		j.History.Born(history.Life{
			Node: p.node, Service: "mixed", UID: "mixed on " + p.node, Devices: p.devices, Shared: p.shared, Started: born, From: born,
		})
		for _, device := range p.devices {
			for back := 5 * time.Second; back >= -time.Second; back -= pace.Interval / 4 {
				f := .2
				if back < time.Second {
					f = .4
				}
				j.Chronicle.note(p.node, now.Add(-back), []gpusim.DeviceTruth{{
					ID: device, Utilization: f, SMActive: f / 2, TensorActive: f / 4, DRAMActive: f / 5, FP16Active: f / 8, FP32Active: f / 10,
					MemoryUsedMiB: int(f * float64(p.capacity)), MemoryTotalMiB: p.capacity, PowerWatts: 1000 * f,
				}})
			}
		}
	}
	j.History.Recovered(born)
	return j, now, func(e *Evaluation) string {
		out.Reset()
		j.averages(e)
		return out.String()
	}
}

// Each field is compared, with what is true of those pods that have it: below and
// above that, and with nothing where there is something, the judge reports it.
func TestJudgeAverages(t *testing.T) {
	j, now, finds := averageCase()
	pipe := names.ServicePipeActive.Name
	bounds := map[string][2]float64{
		names.ServiceUtilization.Name:    {.2, .4},
		names.ServiceUtilizationMin.Name: {.2, .4},
		names.ServiceUtilizationMax.Name: {.2, .4},
		names.ServiceDRAMActive.Name:     {.04, .08},
		pipe + " tensor":                 {.05, .1},
		pipe + " fp16":                   {.025, .05}, // of the full page alone
		pipe + " fp32":                   {.02, .04},
		names.ServiceSMActive.Name:       {.1, .2},
		names.ServicePodMemoryUsage.Name: {(2*20 + 2) * mib / 2, (2*40 + 4) * mib / 2}, // not of the replica
		names.ServicePodMemoryLimit.Name: {(2*100 + 10) * mib / 2, (2*100 + 10) * mib / 2},
		names.ServiceMemoryUsage.Name:    {(2*20 + 2) * mib, (2*40 + 4) * mib},
		names.ServiceMemoryLimit.Name:    {(2*100 + 10) * mib, (2*100 + 10) * mib},
		names.ServicePodPower.Name:       {400, 800}, // nor of the instance
		names.ServicePower.Name:          {400, 800},
	}
	require.Len(t, averages, len(bounds), "all of them are here")
	right := evaluated("mixed", now, 0, nil)
	for key, b := range bounds {
		right.values[key] = (b[0] + b[1]) / 2
	}
	require.Empty(t, finds(right))
	for key := range bounds {
		require.Equal(t, 1, j.verdict.counts.Averages[key], key)
	}
	for _, a := range averages {
		b, e := bounds[a.key], *right
		e.values = maps.Clone(right.values)
		for value, wrong := range map[float64]bool{
			b[0]: false, b[1]: false, b[0] - a.rounding/2: false, b[1] + a.rounding/2: false,
			b[0] - 2*a.rounding: true, b[1] + 2*a.rounding: true, 2*b[1] + 1: true, 0: true,
		} {
			e.values[a.key] = value
			if wrong {
				assert.Contains(t, finds(&e), "VIOLATION of averages", "%s is %g", a.key, value)
				assert.Contains(t, finds(&e), "mixed has a "+a.key+" of")
			} else {
				assert.Empty(t, finds(&e), "%s is %g", a.key, value)
			}
			j.verdict.by = map[string]int{} // print on
		}
		delete(e.values, a.key)
		assert.Contains(t, finds(&e), "mixed has no "+a.key)
	}
}

// What no device of a service reports must not be reported: the power of an instance,
// what a replica uses, what is not on the page.
func TestJudgeAveragesThatNoDeviceReports(t *testing.T) {
	j, now, finds := averageCase()
	j.History.Gone("mixed on "+fleet.FullPages, now.Add(-time.Second)) // the instance and the replica are left
	e := evaluated("mixed", now, 0, nil)
	for i := range averages {
		low, high, some := j.Chronicle.bounds(&averages[i], j.History.Of("mixed", now, now), now.Add(-pace.Late), now)
		if some {
			e.values[averages[i].key] = (low + high) / 2
		}
	}
	require.Empty(t, finds(e))
	assert.Contains(t, e.values, names.ServicePodMemoryUsage.Name)
	for _, key := range []string{names.ServicePower.Name, names.ServicePodPower.Name, names.ServiceSMActive.Name, names.ServicePipeActive.Name + " fp16"} {
		assert.NotContains(t, e.values, key)
		e.values[key] = 0
		assert.Contains(t, finds(e), "none of its devices reports it", key)
		delete(e.values, key)
	}
}

// The lowest and the highest pod hide in no mean.
func TestBoundsOfExtremes(t *testing.T) {
	c := &Chronicle{}
	now := time.Now()
	var lives []history.Life
	for i, value := range []float64{.5, .1, .9} {
		id := string(rune('a' + i))
		lives = append(lives, history.Life{Node: "n", Devices: []string{id}})
		c.note("n", now, []gpusim.DeviceTruth{{ID: id, Utilization: value}})
	}
	want := map[over]float64{meanOfPods: .5, sumOfPods: 1.5, leastOfPods: .1, mostOfPods: .9}
	for over, value := range want {
		a := average{of: func(d *gpusim.DeviceTruth) float64 { return d.Utilization }, over: over}
		low, high, some := c.bounds(&a, lives, now, now)
		assert.True(t, some)
		assert.InDelta(t, value, low, 1e-9)
		assert.InDelta(t, value, high, 1e-9)
	}
}

// A time without observations is not judged.
func TestJudgeAveragesOfAStalledMachine(t *testing.T) {
	j, now, finds := averageCase()
	for key, list := range j.Chronicle.values {
		j.Chronicle.values[key] = list[:len(list)/2]
	}
	assert.Empty(t, finds(evaluated("mixed", now, 0, nil)))
	assert.Equal(t, 1, j.verdict.counts.AveragesSkipped)
	assert.Empty(t, j.verdict.counts.Averages)
	assert.Empty(t, finds(evaluated("a service without pods", now, 0, nil)))
}
