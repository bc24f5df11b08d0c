// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"fmt"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	crcPerSecond  = 100 // DCGM's limit of NVLink CRC errors
	manyLinkFails = 3   // episodes of NVLink errors in a day
)

// Reasons about NVLink.
var (
	nvlinkErrors = Reason{
		Name: "nvlink_errors", State: health.Degraded, Action: health.ResetGPU, Weight: 0.7, Needs: NVLink,
		Doc: Doc{
			Means:   "NVLink transfers have errors. The link recovers, and is slower.",
			Raised:  "`gpu.nvlink.errors` counts a replay or a recovery, or at least 100 CRC errors a second. The third time within 24 hours asks for a check of the mechanics",
			Cleared: "there was none of them for 10 minutes",
			Source:  "the limits of DCGM's health check, which fails on them",
		},
		Reads: []rule.Input{{
			Metric: &names.GPUNVLinkErrors, Attribute: names.GPUNVLinkError, Values: []string{"replay", "recovery", "crc_flit", "crc_data"}, Cumulative: true, Most: rule.MostCount,
		}},
		Judge: judgeNVLink,
		Sentence: func(a *Active) string {
			if a.Variant == linkCRC {
				return fmt.Sprintf("NVLink had %.0f CRC errors a second, the limit is %.0f", a.Value, a.Threshold)
			}
			return fmt.Sprintf("NVLink had %.0f replays and recoveries between two pages, the limit is %.0f a minute", a.Value, a.Threshold)
		},
	}
	// A path to another GPU of the node has several links: how many of them have to fail
	// until it is down depends on the board.
	nvlinkDown = Reason{
		Name: "nvlink_down", State: health.Failed, Action: health.RestartFabricManager, Needs: NVLink, ClearedBy: Person,
		Doc: Doc{
			Means:   "The GPU no longer reaches another GPU of its node over NVLink: transfers between them fail, or take a slower path. If a restart of the fabric manager does not help, reset the GPU.",
			Raised:  "`gpu.nvlink.peers` with `gpu.nvlink.state`=up is lower than it was since the GPU was last reset",
			Cleared: "it is as high as before",
			Source:  "NVIDIA's health validation: no inactive link",
		},
		Reads: []rule.Input{{Metric: &names.GPUNVLinkPeers, Attribute: names.GPUNVLinkState, Values: []string{"up"}, Most: 1 << 10}},
		Judge: func(r Readings, m *Memory, _ pcommon.Timestamp) Finding {
			if !r.known(0) {
				return Finding{}
			}
			up := uint16(max(0, min(r.At(0), math.MaxUint16)))
			m.peers = max(m.peers, up)
			f := holds(up < m.peers)
			f.Value, f.Threshold = float64(up), float64(m.peers)
			return f
		},
		Sentence: func(a *Active) string {
			return fmt.Sprintf("The GPU reaches %.0f other GPUs over NVLink, and reached %.0f before", a.Value, a.Threshold)
		},
	}
)

// The causes of nvlink_errors.
const (
	linkRecovers Variant = iota
	linkCRC
)

// linkCounts are replays, recoveries, and CRC errors of flits and of data.
const linkCounts = 4

func judgeNVLink(r Readings, m *Memory, at pcommon.Timestamp) Finding {
	if !r.some() {
		return Finding{}
	}
	f := Finding{Known: true}
	w := &m.nvlink
	since, _ := w.move(at)
	recovered, crc := 0., 0.
	for i := range m.links {
		by := m.rose(&m.links[i], knownLinks<<i, r.At(i), 0)
		if i < 2 {
			recovered += by
		} else {
			crc += by
		}
	}
	if recovered >= 1 {
		f.Raise, f.Value, f.Threshold = true, recovered, 1
	}
	if crc > 0 || m.crcAt == 0 {
		rose, long := m.crcAt.move(at)
		if long || rose > longest {
			rose = longest
		}
		// The exporter may read the board less often than it is scraped.
		if rate := crc / max(since, rose).Seconds(); since > 0 && rate >= crcPerSecond {
			f.Raise, f.Value, f.Threshold, f.Variant = true, rate, crcPerSecond, linkCRC
		}
	}
	if f.Raise {
		w.bad |= 1
	}
	f.Clear = w.bad == 0 && w.whole(at)
	return f
}

// zero is a reading, or 0 where there was none.
func zero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}
