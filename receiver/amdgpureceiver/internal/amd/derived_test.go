// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext/pagetexttest"
)

// TestECCBlocks: a block has a series from its first error on.
func TestECCBlocks(t *testing.T) {
	e := newExporter(t)
	first := e.Scrape(row("gpu_ecc_correct_umc", 0), row("gpu_ecc_uncorrect_gfx", 2), row("gpu_ecc_deferred_xgmi_wafl", 0))
	assert.Equal(t, []string{"gpu.ecc.errors{error.type=uncorrected,gpu.ecc.block=gfx} 2"}, first.Points(board0))
	second := e.Scrape(row("gpu_ecc_correct_umc", 1), row("gpu_ecc_uncorrect_gfx", 2))
	assert.Equal(t, []string{"gpu.ecc.errors{error.type=corrected,gpu.ecc.block=umc} 1", "gpu.ecc.errors{error.type=uncorrected,gpu.ecc.block=gfx} 2"}, second.Points(board0))
	assert.Equal(t, timeOf(t, first), startOf(t, second, "umc"), "it was 0 on the first page")
	assert.Equal(t, timeOf(t, first), startOf(t, second, "gfx"))
	third := e.Scrape(row("gpu_ecc_correct_umc", 0))
	assert.Equal(t, []string{"gpu.ecc.errors{error.type=corrected,gpu.ecc.block=umc} 0"}, third.Points(board0), "it has begun again")
	assert.Equal(t, timeOf(t, third), startOf(t, third, "umc"))
}

// TestECCBlockNames: each block and type is a family of its own.
func TestECCBlockNames(t *testing.T) {
	for block, name := range eccBlockNames {
		for kind, of := range eccTypes {
			id := eccBlock(block, kind)
			assert.Equal(t, "gpu_ecc_"+of.family+"_"+name, Table.Fields[id].Name)
		}
	}
	assert.Len(t, Table.Fields, int(firstECCBlock)+57)
	for _, d := range Table.Derived {
		if d.Metric == &names.GPUECCErrors {
			assert.Len(t, d.From, 57)
		}
	}
	assert.Equal(t, devicetable.ID(len(Table.Fields)-1), eccBlock(len(eccBlockNames)-1, 2))
}

func timeOf(t *testing.T, r pagetexttest.Result) pcommon.Timestamp {
	t.Helper()
	for _, rm := range r.Metrics.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			return pagetexttest.NumberPoints(m).At(0).Timestamp()
		}
	}
	return 0
}

func startOf(t *testing.T, r pagetexttest.Result, block string) pcommon.Timestamp {
	t.Helper()
	for _, rm := range r.Metrics.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			for _, p := range pagetexttest.NumberPoints(m).All() {
				if v, ok := p.Attributes().Get(names.GPUECCBlock); ok && v.Str() == block {
					return p.StartTimestamp()
				}
			}
		}
	}
	require.Fail(t, "no point of "+block)
	return 0
}

// TestEnergyThatNeverMoves: on some boards the accumulator is constant. That of one that is
// off may be, too.
func TestEnergyThatNeverMoves(t *testing.T) {
	energy := func(r pagetexttest.Result) int { return len(r.Only(board0, "hw.energy")) }
	for name, c := range map[string]struct {
		power  int
		values []int // million µJ, a page each
		want   []int // points
	}{
		"constant under power":     {90, []int{7, 7, 7, 7}, []int{1, 0, 0, 0}},
		"moves late":               {90, []int{7, 7, 8, 8}, []int{1, 0, 1, 1}},
		"moved once":               {90, []int{7, 8, 8, 8}, []int{1, 1, 1, 1}},
		"no power that can be one": {0, []int{7, 7}, []int{1, 1}},
		"never counted":            {90, []int{0, 0}, []int{0, 0}},
	} {
		e := newExporter(t)
		for i, v := range c.values {
			r := e.Scrape(row("gpu_package_power", c.power), row("gpu_energy_consumed", float64(v)*1e6))
			assert.Equal(t, c.want[i], energy(r), "%s, page %d", name, i)
		}
	}
}

// TestEnergyGlitch: a fall that is undone is no reset.
func TestEnergyGlitch(t *testing.T) {
	e := newExporter(t)
	page := func(v float64) pagetexttest.Result {
		return e.Scrape(row("gpu_energy_consumed", v*microjoulesOfLibrary))
	}
	page(100)
	assert.Equal(t, []string{"hw.energy{} 101"}, page(101).Points(board0))
	assert.Empty(t, page(2).Points(board0))
	r := page(102)
	assert.Equal(t, []string{"hw.energy{} 102"}, r.Points(board0))
	assert.Equal(t, map[string]int{"implausible": 1}, r.Refusals())
	assert.Empty(t, page(3).Points(board0))
	assert.Equal(t, []string{"hw.energy{} 4"}, page(4).Points(board0), "a reset")
}

// TestThrottleOfOldExporters: the ratio is that of two pages.
func TestThrottleOfOldExporters(t *testing.T) {
	page := func(counter, ppt, low0, low1 int, more ...string) []string {
		return append([]string{
			row("gpu_violation_current_accumulated_counter", counter), row("gpu_violation_ppt_residency_accumulated", ppt),
			row("gpu_violation_low_utilization_accumulated", low0, `xcc_index="0"`), row("gpu_violation_low_utilization_accumulated", low1, `xcc_index="1"`),
		}, more...)
	}
	e := newExporter(t)
	for _, step := range []struct {
		why  string
		page []string
		want []string
	}{
		{"the first page knows nothing", page(1000, 500, 0, 0), []string{}},
		{"a quarter of the time", page(2000, 750, 100, 300), append(throttle("power_cap", "0.25", 1), "gpu.throttle.ratio{gpu.throttle.reason=low_util} 0.2")},
		{"the counter must grow", page(2000, 750, 100, 300), []string{}},
		{"nothing happened", page(3000, 750, 100, 300), append(throttle("power_cap", "0", 0), "gpu.throttle.ratio{gpu.throttle.reason=low_util} 0")},
		{"more than all the time is impossible", page(3100, 950, 100, 300), []string{"gpu.throttle.ratio{gpu.throttle.reason=low_util} 0"}},
		{"a reset", page(10, 1, 0, 0), []string{}},
		{"the percentage wins", page(20, 11, 0, 0, row("gpu_violation_ppt_residency_percentage", 3)), append(throttle("power_cap", "0.03", 1), "gpu.throttle.ratio{gpu.throttle.reason=low_util} 0")},
	} {
		assert.ElementsMatch(t, step.want, e.Scrape(step.page...).Points(board0), step.why)
	}
}

// TestHealthOfPartitions: a board is as healthy as the worst of its partitions.
func TestHealthOfPartitions(t *testing.T) {
	r := scrape(t, part(0, 8, "gpu_health", 1), part(1, 9, "gpu_health", 0), part(2, 10, "gpu_health", 1))
	assert.Equal(t, health("fail"), r.Points(board0))
	assert.Empty(t, r.Points(board0+"/1"))
}

// TestRASOfUnknownSeverity: only the severities that records have.
func TestRASOfUnknownSeverity(t *testing.T) {
	r := scrape(t, row("gpu_afid_errors", 30, `afid_index="0"`, `severity="odd"`), row("gpu_afid_errors", 30), row("gpu_afid_errors", 24, `severity="fatal"`))
	assert.Equal(t, []string{"gpu.ras.last{gpu.ras.severity=fatal} 24"}, r.Points(board0))
	assert.Equal(t, map[string]int{"unmapped": 2}, r.Refusals())
}

// TestFrozen: an exporter that repeats old values is found by an energy that has moved.
func TestFrozen(t *testing.T) {
	frozen := func(energies ...float64) []string {
		e := newExporter(t)
		var r pagetexttest.Result
		for _, v := range energies {
			r = e.Scrape(row("gpu_energy_consumed", v))
		}
		return r.Only("", "gpu.exporter.frozen")
	}
	still := []float64{2, 2, 2, 2, 2, 2, 2, 2}
	assert.Empty(t, frozen(still...), "it never moved")
	assert.Equal(t, []string{"gpu.exporter.frozen{} 0"}, frozen(1, 2))
	assert.Equal(t, []string{"gpu.exporter.frozen{} 1"}, frozen(append([]float64{1}, still...)...))
}
