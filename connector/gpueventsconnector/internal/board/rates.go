// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	crcPerSecond = 100 // DCGM's limit of NVLink CRC errors
	// A link is judged under load alone: an idle one saves power with fewer lanes.
	underLoad    = 0.5
	loadedFor    = 5 * time.Minute
	replayed     = 5 // minutes of the window
	throttled    = 0.5
	notThrottled = 0.1
	// longest is the longest time between two pages that one of them stands for.
	longest = time.Minute
)

// replaysPerLane are the replays a minute that a lane may have, by generation from 1: a
// bit error rate of 1e-12 at the rate of the lane (DCGM's limit).
var replaysPerLane = [...]float64{0.15, 0.3, 0.48, 0.96, 1.92, 3.84}

// Reasons about a rate in a window of ten minutes, or under load.
var (
	nvlinkErrors = Reason{
		Name: "nvlink_errors", State: health.Degraded, Action: health.ResetGPU, Weight: 0.7,
		Doc: Doc{
			Means:   "NVLink transfers have errors. The link recovers, and is slower.",
			Raised:  "`gpu.nvlink.errors` counts a replay or a recovery, or at least 100 CRC errors a second. The third time within 24 hours asks for a check of the mechanics",
			Cleared: "there was none of them for 10 minutes",
			Source:  "the limits of DCGM's health check, which fails on them",
		},
		Reads: []rule.Input{{
			Metric: &names.GPUNVLinkErrors, Attribute: names.GPUNVLinkError, Values: []string{"replay", "recovery", "crc_flit", "crc_data"}, Count: true, Most: rule.MostCount,
		}},
		Judge: judgeNVLink,
	}
	pcieReplays = Reason{
		Name: "pcie_replays", State: health.Degraded, Action: health.CheckMechanics, Weight: 0.7,
		Doc: Doc{
			Means:   "The PCIe link of the board repeats transfers more often than a good link.",
			Raised:  "`gpu.pcie.replays` rises by more in a minute than a bit error rate of 1e-12 explains, in 5 of 10 minutes: 16 for 16 lanes of generation 4, 31 of generation 5",
			Cleared: "there was no such minute for 10 minutes",
			Source:  "DCGM's health check: by lane and minute 0.15, 0.3, 0.48, 0.96, 1.92, 3.84 for generations 1 to 6",
		},
		Reads: []rule.Input{
			{Metric: &names.GPUPCIeReplays, Count: true, Most: rule.MostCount},
			{Metric: &names.GPUPCIeWidth, Most: 64}, {Metric: &names.GPUPCIeGeneration, Most: 16},
		},
		Judge: func(r Readings, m *Memory, at pcommon.Timestamp) Finding {
			if !r.known(0) && !(r.At(1) > 0) {
				return Finding{}
			}
			m.move(at)
			m.sum += m.rose(r.At(0), r.At(1))
			limit := replayLimit(r.At(2), r.At(3))
			if m.sum > limit {
				m.window |= 1
			}
			return Finding{Known: true, Raise: m.over() >= replayed, Clear: m.window == 0 && m.whole(), Value: m.sum, Threshold: limit}
		},
	}
	pcieWidth = Reason{
		Name: "pcie_width", State: health.Degraded, Action: health.CheckMechanics, Weight: 0.7,
		Doc: Doc{
			Means:   "The PCIe link of the board has fewer lanes or a lower generation than it can have, and is slower. An idle link saves power that way, and is not judged.",
			Raised:  "`gpu.pcie.link.width` or `gpu.pcie.link.generation` is below its maximum for 5 minutes in which the utilization is above 0.5",
			Cleared: "both are at their maximum for 5 minutes under load",
			Source:  "the maximum that the link has negotiated, DCGM fields 235 to 238",
		},
		Reads: []rule.Input{
			{Metric: &names.GPUPCIeWidth, Most: 64}, {Metric: &names.GPUPCIeWidthMax, Most: 64},
			{Metric: &names.GPUPCIeGeneration, Most: 16}, {Metric: &names.GPUPCIeGenerationMax, Most: 16},
			{Metric: &names.GPUUtilization, Attribute: names.HwGPUTask, Values: []string{"general"}, Most: 1},
		},
		Judge: func(r Readings, m *Memory, at pcommon.Timestamp) Finding {
			width := r.known(0) && r.known(1)
			generation := r.known(2) && r.known(3)
			if !width && !generation || !r.known(4) {
				return Finding{}
			}
			narrow := width && r.At(0) < r.At(1) || generation && r.At(2) < r.At(3)
			f := Finding{Known: true, Value: r.At(0), Threshold: r.At(1)}
			if !(width && r.At(0) < r.At(1)) && narrow {
				f.Value, f.Threshold = r.At(2), r.At(3)
			}
			gap := m.at != 0 && later(at, m.at, longest) || at < m.at
			// m.known is whether the link was narrow since m.since.
			if r.At(4) <= underLoad || m.since == 0 || gap || narrow != m.known {
				m.since, m.known = at, narrow
				if r.At(4) <= underLoad {
					m.since = 0
				}
				return f
			}
			if later(at, m.since, loadedFor) {
				f.Raise, f.Clear = narrow, !narrow
			}
			return f
		},
	}
	throttle = Reason{
		Name: "throttle", State: health.Degraded, Action: health.CheckMechanics, Weight: 0.6,
		Doc: Doc{
			Means:   "The hardware slows the board down to protect it. A power limit does not count.",
			Raised:  "`gpu.throttle.active` has hw_thermal, sw_thermal or hw_power_brake for at least half of 10 minutes",
			Cleared: "for less than a tenth of 10 minutes",
			Source:  "gpud: 0.6 slowdowns a minute over 10 minutes",
		},
		Reads: []rule.Input{{
			Metric: &names.GPUThrottleActive, Attribute: names.GPUThrottleReason,
			Values: []string{names.ThrottleHWThermal, names.ThrottleSWThermal, names.ThrottleHWPowerBrake}, Most: 1,
		}},
		Judge: func(r Readings, m *Memory, at pcommon.Timestamp) Finding {
			known, active := false, false
			for i := range 3 {
				known, active = known || r.known(i), active || r.At(i) > 0
			}
			if !known {
				return Finding{}
			}
			before := m.at
			m.move(at)
			if active && before != 0 && at > before {
				// The page stands for the time since the one before.
				m.held(min(time.Duration(at-before), longest))
			}
			share := m.ratio()
			return Finding{Known: true, Raise: share >= throttled, Clear: share < notThrottled && m.whole(), Value: share, Threshold: throttled}
		},
	}
)

func judgeNVLink(r Readings, m *Memory, at pcommon.Timestamp) Finding {
	const replay, recovery, flit, data = 0, 2, 4, 6
	total, crc, known := 0., 0., false
	for _, i := range []int{replay, recovery} {
		if r.known(i) {
			total, known = total+r.At(i), true
		}
	}
	for _, i := range []int{flit, data} {
		if r.known(i) {
			crc, known = crc+r.At(i), true
		}
	}
	if !known {
		return Finding{}
	}
	before := m.at
	m.move(at)
	f := Finding{Known: true, Threshold: crcPerSecond}
	if m.known && total > m.count {
		m.window |= 1
		f.Value = total - m.count
		f.Threshold = 1
	}
	if before != 0 && at > before && crc > m.other {
		if rate := (crc - m.other) / time.Duration(at-before).Seconds(); m.known && rate >= crcPerSecond {
			m.window |= 1
			f.Value = rate
		}
	}
	m.count, m.other, m.known = total, crc, true
	f.Raise, f.Clear = m.window&1 == 1, m.window == 0 && m.whole()
	return f
}

// replayLimit is how many replays a minute a link may have. Without its width and
// generation it is taken for 16 lanes of generation 4.
func replayLimit(width, generation float64) float64 {
	if !(width >= 1) {
		width = 16
	}
	i := 4
	if generation >= 1 {
		i = min(int(generation), len(replaysPerLane))
	}
	return math.Ceil(width * replaysPerLane[i-1])
}
