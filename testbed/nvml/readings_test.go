// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmllab

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// limit is how long a helper may take for anything on a busy machine.
const limit = 30 * time.Second

// want is what a helper should read of a board, by the name of the reading (and the row),
// in the library's units: what is not in it should not be read. Readings of GPM are means
// over a window, and not in it.
func want(b *gpusim.DriverBoard, driver int) map[string]float64 {
	m, mig := &b.Model, len(b.Instances) > 0
	flag := map[bool]float64{true: 1}
	out := map[string]float64{
		"power.usage": float64(b.PowerMilliwatts),
		"energy":      float64(b.EnergyMillijoules), "temperature.gpu": float64(b.TemperatureC),
		"clock.sm": float64(b.SMClockMHz), "clock.video": float64(m.VideoClock),
		"clock.reasons": float64(b.ClockEvents), "pcie.replays": float64(b.PCIeReplays), "recovery.action": float64(b.RecoveryAction),
		"violation.power": float64(b.PowerNS), "violation.thermal": float64(b.ThermalNS), "violation.sync_boost": 0,
		"violation.board_limit": 0, "violation.low_util": 0, "violation.reliability": 0,
	}
	if !m.Integrated {
		memory(out, &b.Row, driver)
		out["power.limit.management"], out["power.limit.enforced"], out["clock.memory"] = m.TDPWatts*1e3, m.TDPWatts*1e3, float64(b.MemoryClockMHz)
	}
	if !mig {
		out["utilization.gpu"] = math.Round(100 * b.Row.Utilization)
		out["utilization.memory"] = math.Round(100 * b.Row.Copy)
		out["utilization.encoder"], out["utilization.decoder"] = 0, 0
	}
	if m.HBM {
		out["temperature.memory"] = float64(b.MemoryTemperatureC)
	}
	newer := slices.Contains([]string{"L4", "L40S", "RTX4090", "H100", "H200", "B200", "GB10"}, m.Key)
	switch {
	case !newer:
		out["temperature.limit.shutdown"], out["temperature.limit.slowdown"], out["temperature.limit.gpu_max"] = 94, 89, 85
		if m.HBM {
			out["temperature.limit.memory_max"] = 95
		}
	case driver >= 570086:
		out["temperature.margin"] = 87 - float64(b.TemperatureC)
	}
	for i := range m.Fans {
		out[fmt.Sprintf("fan.speed/%d", i)] = min(30+max(float64(b.TemperatureC)-40, 0), 100)
	}
	if m.ECC {
		out["ecc.volatile.corrected"], out["ecc.volatile.uncorrected"] = float64(b.ECCCorrected), float64(b.ECCUncorrected)
		out["ecc.aggregate.corrected"], out["ecc.aggregate.uncorrected"] = float64(b.ECCEverCorrected), float64(b.ECCEverUncorrected)
	}
	switch {
	case mig:
	case m.RowRemap:
		out["remapped.corrected"], out["remapped.uncorrected"] = 0, float64(b.RemappedRows)
		out["remapped.pending"], out["remapped.failure"] = flag[b.RemapPending], flag[b.RemapFailed]
	case m.ECC:
		out["retired.corrected"], out["retired.uncorrected"] = float64(b.RetiredCorrected), float64(b.RetiredUncorrected)
		out["retired.pending"] = flag[b.RemapPending]
	}
	if m.NVLinks > 0 && !m.NVLink5 && !mig {
		for _, name := range []string{"crc_flit", "crc_data", "replay", "recovery"} {
			out["nvlink."+name] = float64(b.LinkErrors[name])
		}
	}
	if !slices.Contains([]string{"H100", "H200", "B200"}, m.Key) || driver < 520056 {
		// What GPM would give is asked for at a cost, which the test does.
		out["pcie.transmit"], out["pcie.receive"] = math.Round(b.PCIeTransmit/1e3), math.Round(b.PCIeReceive/1e3)
	}
	return out
}

func memory(out map[string]float64, r *gpusim.DriverRow, driver int) {
	total, used, reserved := float64(r.TotalMiB)*(1<<20), float64(r.UsedMiB)*(1<<20), float64(r.ReservedMiB)*(1<<20)
	out["memory.total"], out["memory.free"] = total, total-used-reserved
	if driver < 510039 { // the first version of the structure
		out["memory.used"] = used + reserved
		return
	}
	out["memory.used"], out["memory.reserved"] = used, reserved
}

// got are the values that were read, without those of GPM and of NVLink's counters, which
// depend on time.
func got(values []nvmlproto.Value) (map[string]float64, map[string]float64) {
	out, rates := map[string]float64{}, map[string]float64{}
	for _, v := range values {
		name := v.Name
		if v.Row != "" {
			name += "/" + v.Row
		}
		switch {
		case v.Return != 0:
		case len(name) > 4 && name[:4] == "gpm.":
			rates[name] = float64(v.V)
		case len(name) > 12 && (name[:12] == "nvlink.data." || name[:12] == "nvlink.bytes"):
			rates[name] = float64(v.V)
		default:
			out[name] = float64(v.V)
		}
	}
	return out, rates
}

// A helper reads of every model, on every driver, what is true and nothing else.
func TestReadings(t *testing.T) {
	t.Parallel()
	type row struct{ driver, model string }
	rows := []row{{"550", "H100"}, {"550", "T4"}, {"450", "A100-SXM4-80GB"}, {"535.98", "L4"}, {"575", "GB10"}}
	if all() {
		for _, d := range Drivers {
			rows = append(rows, row{d.Name, "H100"})
		}
		for _, m := range gpusim.Models() {
			rows = append(rows, row{"575", m.Key})
		}
	}
	seen := map[row]bool{}
	for _, r := range rows {
		if seen[r] {
			continue
		}
		seen[r] = true
		t.Run(r.driver+"/"+r.model, func(t *testing.T) {
			t.Parallel()
			l := Start(t, Options{Driver: r.driver, Model: r.model, Pods: []gpusim.Pod{
				{Namespace: "train", Name: "job-0", Container: "main", Devices: []string{"0"}, Load: gpusim.Training},
			}})
			number := findDriver(t, r.driver).Number
			h := l.StartHelper()
			withPCIe := func(r *nvmlproto.Request) { r.PCIe = true }
			first := h.Scrape(limit, withPCIe)
			require.NotNil(t, first.System)
			require.Zero(t, first.System.Return, first.System.Missing)
			assert.Equal(t, findDriver(t, r.driver).Version, first.System.Driver)
			h.Window()
			l.Advance(20 * time.Second)
			answer := h.Scrape(limit, withPCIe)
			board, truth := answer.Of(l, 0), l.Truth()[0]
			require.NotNil(t, board)
			identity(t, board, &truth)
			values, rates := got(board.Values)
			assert.Equal(t, want(&truth, number), values)
			hopper := slices.Contains([]string{"H100", "H200", "B200"}, r.model) && number >= 520056
			assert.Equal(t, hopper, board.GPM)
			if hopper {
				assert.InDelta(t, mean(l, 20, func(b []gpusim.DriverBoard) float64 { return 100 * b[0].Row.Tensor }), rates["gpm.tensor"], 1e-6)
				assert.InDelta(t, mean(l, 20, func(b []gpusim.DriverBoard) float64 { return b[0].NVLink / (1 << 20) }), rates["gpm.nvlink.transmit"], 1e-3)
			}
			links(t, rates, &truth.Model, total(l, func(b []gpusim.DriverBoard) float64 { return b[0].NVLink }))
			assert.Empty(t, board.Refused)
		})
	}
}

func identity(t *testing.T, b *nvmlproto.Board, truth *gpusim.DriverBoard) {
	t.Helper()
	assert.Zero(t, b.Return, b.Error)
	assert.Equal(t, truth.UUID, b.UUID)
	assert.Equal(t, truth.Model.Name, b.Name)
	assert.Equal(t, truth.Model.ECC, b.Serial != "")
	assert.NotEmpty(t, b.VBIOS)
	require.NotNil(t, b.Index)
	assert.Equal(t, truth.Index, *b.Index)
	require.NotNil(t, b.Minor)
	assert.Equal(t, truth.Minor, *b.Minor)
}

// links holds the counters of NVLink against the bytes of one direction: in KiB, or over
// all links.
func links(t *testing.T, rates map[string]float64, m *gpusim.Model, bytes float64) {
	t.Helper()
	data, hasData := rates["nvlink.data.transmit"]
	sum, hasSum := rates["nvlink.bytes.receive"]
	assert.Equal(t, m.NVLinks > 0 && !m.NVLink5, hasData)
	assert.Equal(t, m.NVLink5, hasSum)
	switch {
	case hasData:
		assert.InDelta(t, bytes/1024, data, 1)
	case hasSum:
		assert.InDelta(t, bytes, sum, float64(m.NVLinks))
	}
}

// mean is that of the last seconds before now.
func mean(l *Lab, seconds int, of func([]gpusim.DriverBoard) float64) float64 {
	var sum float64
	for i := 1; i <= seconds; i++ {
		boards, err := l.Fleet.DriverBoards(l.Node, l.Fleet.Now().Add(-time.Duration(i)*time.Second))
		require.NoError(l.t, err)
		sum += of(boards)
	}
	return sum / float64(seconds)
}

// total is the sum over the seconds since the start.
func total(l *Lab, of func([]gpusim.DriverBoard) float64) float64 {
	seconds := int(l.Fleet.Now().Sub(l.Fleet.Start()) / time.Second)
	return mean(l, seconds, of) * float64(seconds)
}

// Instances have an identity, memory and profiling of their own, and a board in MIG mode
// only what is the board's.
func TestInstances(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"H100", "A100-SXM4-80GB"} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			l := Start(t, Options{
				Model: model, Boards: 2, MIG: map[string][]string{"1": {"3g.40gb", "1g.10gb", "1g.10gb"}}, Compute: map[string]int{"1:0": 2},
				Pods: []gpusim.Pod{{Namespace: "n", Name: "p", Container: "c", Devices: []string{"1:1"}, Load: gpusim.Training}},
			})
			h := l.StartHelper()
			h.Scrape(limit)
			h.Window()
			l.Advance(15 * time.Second)
			answer := h.Scrape(limit)
			truth := l.Truth()[1]
			whole, board := answer.Of(l, 0), answer.Of(l, 1)
			require.NotNil(t, board)
			assert.Equal(t, &nvmlproto.MIG{}, whole.MIG)
			assert.Equal(t, &nvmlproto.MIG{Current: 1, Pending: 1}, board.MIG)
			values, _ := got(board.Values)
			assert.Equal(t, without(want(&truth, 550127), "pcie."), values)
			require.Len(t, board.Instances, 3)
			slices.SortFunc(board.Instances, func(a, b nvmlproto.Instance) int { return len(b.Compute) - len(a.Compute) })
			for i, have := range board.Instances {
				j := slices.IndexFunc(truth.Instances, func(r gpusim.DriverRow) bool { return r.ID == have.GI })
				require.GreaterOrEqual(t, j, 0)
				is := &truth.Instances[j]
				assert.Len(t, have.Compute, map[bool]int{true: 2, false: 1}[i == 0])
				if i > 0 {
					assert.Equal(t, []nvmlproto.Compute{{CI: 0, UUID: is.UUID}}, have.Compute)
					assert.Contains(t, have.Name, "MIG "+is.Profile)
				}
				should := map[string]float64{}
				memory(should, is, 550127)
				values, rates := got(have.Values)
				assert.Equal(t, should, values)
				if model != "H100" {
					assert.Empty(t, rates)
					continue
				}
				tensor := mean(l, 15, func(b []gpusim.DriverBoard) float64 { return 100 * b[1].Instances[j].Tensor })
				assert.InDelta(t, tensor, rates["gpm.tensor"], 1e-6, have.Name)
			}
		})
	}
}

func without(values map[string]float64, prefix string) map[string]float64 {
	for name := range values {
		if len(name) > len(prefix) && name[:len(prefix)] == prefix && name != "pcie.replays" {
			delete(values, name)
		}
	}
	return values
}
