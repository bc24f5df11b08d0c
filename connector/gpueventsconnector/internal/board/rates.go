// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	// A link is judged under load alone: an idle one saves power with fewer lanes.
	underLoad    = 0.5
	loadedFor    = 5 * time.Minute
	replayed     = 5 // minutes of the window
	throttled    = 0.5
	notThrottled = 0.1
	// longest is the longest time before a page that the page stands for.
	longest = time.Minute
)

// replaysPerLane are the replays a minute that a lane may have, by generation from 1: a
// bit error rate of 1e-12 at the rate of the lane (DCGM's limit).
var replaysPerLane = [...]float64{0.15, 0.3, 0.48, 0.96, 1.92, 3.84}

// Reasons about a rate in a window of ten minutes, or under load.
var (
	pcieReplays = Reason{
		Name: "pcie_replays", State: health.Degraded, Action: health.CheckMechanics, Weight: 0.7, Needs: Replays,
		Doc: Doc{
			Means:   "The PCIe link of the board repeats transfers more often than a good link.",
			Raised:  "`gpu.pcie.replays` rises by more in a minute than a bit error rate of 1e-12 explains, in 5 of 10 minutes: 16 for 16 lanes of generation 4, 31 of generation 5",
			Cleared: "there was no such minute for 10 minutes",
			Source:  "DCGM's health check: by lane and minute 0.15, 0.3, 0.48, 0.96, 1.92, 3.84 for generations 1 to 6",
		},
		Reads: []rule.Input{
			{Metric: &names.GPUPCIeReplays, Cumulative: true, Most: rule.MostCount},
			{Metric: &names.GPUPCIeWidth, Most: 64}, {Metric: &names.GPUPCIeGeneration, Most: 16},
		},
		Judge: judgeReplays,
		Sentence: func(a *Active) string {
			return fmt.Sprintf("The PCIe link repeated %.0f transfers within a minute, the limit is %.0f, in %d of 10 minutes", a.Value, a.Threshold, replayed)
		},
	}
	pcieWidth = Reason{
		Name: "pcie_width", State: health.Degraded, Action: health.CheckMechanics, Weight: 0.7, Needs: NVIDIA,
		Doc: Doc{
			Means:   "The PCIe link of the board has fewer lanes or a lower generation than it can have, and is slower. An idle link saves power that way, and is not judged.",
			Raised:  "`gpu.pcie.link.width` or `gpu.pcie.link.generation` is below its maximum for 5 minutes in which the utilization is above 0.5; pauses do not count",
			Cleared: "both are at their maximum for 5 minutes under load",
			Source:  "the maximum that the link has negotiated, DCGM fields 235 to 238",
		},
		Reads: []rule.Input{
			{Metric: &names.GPUPCIeWidth, Most: 64}, {Metric: &names.GPUPCIeWidthMax, Most: 64},
			{Metric: &names.GPUPCIeGeneration, Most: 16}, {Metric: &names.GPUPCIeGenerationMax, Most: 16},
			{Metric: &names.GPUUtilization, Attribute: names.HwGPUTask, Values: []string{"general"}, Most: 1},
		},
		Judge: judgeWidth,
		Sentence: func(a *Active) string {
			if a.Variant == lowGeneration {
				return fmt.Sprintf("The PCIe link is of generation %.0f under load, and can have %.0f", a.Value, a.Threshold)
			}
			return fmt.Sprintf("The PCIe link has %.0f lanes under load, and can have %.0f", a.Value, a.Threshold)
		},
	}
	throttle = Reason{
		Name: "throttle", State: health.Degraded, Action: health.CheckMechanics, Weight: 0.6, Needs: Throttles,
		Doc: Doc{
			Means:   "The hardware slows the board down to protect it. A power limit does not count.",
			Raised:  "`gpu.throttle.active` has hw_thermal, sw_thermal, hw_power_brake, prochot, vr_thermal or memory_thermal for at least half of 10 minutes",
			Cleared: "for less than a tenth of 10 minutes",
			Source:  "gpud: 0.6 slowdowns a minute over 10 minutes",
		},
		Reads: []rule.Input{{
			Metric: &names.GPUThrottleActive, Attribute: names.GPUThrottleReason,
			Values: []string{
				names.ThrottleHWThermal, names.ThrottleSWThermal, names.ThrottleHWPowerBrake,
				names.ThrottleProchot, names.ThrottleVRThermal, names.ThrottleMemoryThermal,
			}, Flag: true,
		}},
		Judge: func(r Readings, m *Memory, at pcommon.Timestamp) Finding {
			if !r.some() {
				return Finding{}
			}
			since, by := m.throttled.move(at)
			m.held.move(by)
			if r.set() {
				m.held.add(min(since, longest))
			}
			part := m.held.ratio()
			return Finding{Known: true, Raise: part >= throttled, Clear: part < notThrottled && m.throttled.whole(at), Value: part, Threshold: throttled}
		},
		Sentence: func(a *Active) string {
			return fmt.Sprintf("The hardware held the clocks down for %.0f %% of 10 minutes, the limit is %.0f %%", 100*a.Value, 100*a.Threshold)
		},
	}
)

func judgeReplays(r Readings, m *Memory, at pcommon.Timestamp) Finding {
	const replays, lanes, generation = 0, 1, 2
	if !r.known(replays) {
		return Finding{}
	}
	w := &m.replayed
	since, by := w.move(at)
	if by > 0 {
		m.replaySum, m.replayLimit = 0, 0
	}
	rose := m.rose(&m.replays, knownReplays, r.At(replays), 0)
	if since > time.Minute {
		rose *= float64(time.Minute) / float64(since)
	}
	m.replaySum += float32(rose)
	m.replayLimit = max(m.replayLimit, float32(replayLimit(r.At(lanes), r.At(generation))))
	f := Finding{Known: true, Value: float64(m.replaySum), Threshold: float64(m.replayLimit)}
	if m.replaySum > m.replayLimit {
		w.bad |= 1
		f.Raise = w.over() >= replayed
	}
	f.Clear = w.bad == 0 && w.whole(at)
	return f
}

// replayLimit is how many replays a minute a link may have. Without its width and
// generation it is taken for 16 lanes of generation 4.
func replayLimit(lanes, generation float64) float64 {
	if !(lanes >= 1) {
		lanes = 16
	}
	i := 4
	if generation >= 1 {
		i = int(min(generation, float64(len(replaysPerLane))))
	}
	return math.Ceil(lanes * replaysPerLane[i-1])
}

// lowGeneration is the cause of pcie_width with all lanes.
const lowGeneration Variant = 1

func judgeWidth(r Readings, m *Memory, at pcommon.Timestamp) Finding {
	const lanes, mostLanes, generation, mostGeneration, utilization = 0, 1, 2, 3, 4
	few, slow := r.At(lanes) < r.At(mostLanes), r.At(generation) < r.At(mostGeneration)
	judged := r.known(lanes) && r.known(mostLanes) || r.known(generation) && r.known(mostGeneration)
	if !judged || !r.known(utilization) {
		return Finding{}
	}
	f := Finding{Known: true, Value: r.At(lanes), Threshold: r.At(mostLanes)}
	if slow && !few {
		f.Value, f.Threshold, f.Variant = r.At(generation), r.At(mostGeneration), lowGeneration
	}
	narrow := few || slow
	since, gap := m.loadAt.move(at)
	switch {
	case r.At(utilization) <= underLoad:
		// A pause, as for a checkpoint, is no reading of the link.
		return f
	case gap || narrow != m.narrow:
		m.loaded, m.narrow = 0, narrow
	default:
		m.loaded += min(since, longest)
	}
	if m.loaded >= loadedFor {
		f.Raise, f.Clear = narrow, !narrow
	}
	return f
}
