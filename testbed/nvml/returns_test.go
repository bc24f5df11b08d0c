// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmllab

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

const power = "nvmlDeviceGetPowerUsage"

// What a call for a value returns costs that value alone.
func TestReturnsOfValues(t *testing.T) {
	t.Parallel()
	for _, c := range quick([]struct {
		returned int
		again    bool // it is asked for again with the next scrape
	}{
		{3, false}, {2, true}, {4, false}, {16, true}, {13, false}, {25, false}, {26, false}, {17, false},
		{6, true}, {21, true}, {27, true}, {29, true}, {7, true}, {10, true}, {11, true}, {14, true}, {19, true},
		{20, true}, {23, true}, {12, true}, {30, true}, {999, true}, {77, true}, {-1, true},
	}, 3) {
		scenario(t, fmt.Sprint(c.returned), Options{}, func(w *world) {
			w.Fault("0", power, "return", c.returned)
			w.right(w.scrape(), "power.usage")
			calls := w.calls(power)
			assert.Equal(w.T, 1, calls)
			a := w.scrape()
			w.right(a, "power.usage")
			v, there := Value(a.Of(w.Lab, 0).Values, "power.usage")
			assert.True(w.T, there)
			assert.Equal(w.T, c.returned, v.Return)
			assert.Equal(w.T, c.again, w.calls(power) > calls)
			w.Clear()
			if c.again {
				w.right(w.scrape())
			}
		})
	}
}

// Values of one call have a return each, and come in any order.
func TestReturnsOfParts(t *testing.T) {
	t.Parallel()
	for _, c := range quick([]struct {
		name, call, kind string
		argument         []any
		absent           []string
	}{
		{"field", "nvmlDeviceGetFieldValues(82)", "return", []any{2}, []string{"temperature.memory"}},
		{"field of the other order", "nvmlDeviceGetFieldValues", "reversed", nil, nil},
		{"field marked double", "f.4", "marked_double", nil, nil},
		{"field of type u16", "f.94", "value", []any{"6 0"}, nil},
		{"field of unknown type", "f.94", "value", []any{"9 5"}, []string{"pcie.replays"}},
		{"field that the board lacks", "f.82", "absent", nil, []string{"temperature.memory"}},
		{"clock", "nvmlDeviceGetClockInfo(2)", "return", []any{2}, []string{"clock.memory"}},
		{"all fields", "nvmlDeviceGetFieldValues", "return", []any{2}, []string{
			"temperature.memory", "violation.power", "violation.thermal", "violation.sync_boost", "violation.board_limit", "violation.low_util",
			"violation.reliability", "pcie.replays", "nvlink.crc_flit", "nvlink.crc_data", "nvlink.replay", "nvlink.recovery",
			"ecc.volatile.corrected", "ecc.volatile.uncorrected", "ecc.aggregate.corrected", "ecc.aggregate.uncorrected",
			"remapped.corrected", "remapped.uncorrected", "remapped.pending", "remapped.failure", "recovery.action",
		}},
		{"ECC off", "f.[3-6]", "value", []any{"3 0 0"}, []string{"ecc.volatile.corrected", "ecc.volatile.uncorrected", "ecc.aggregate.corrected", "ecc.aggregate.uncorrected"}},
		{"clock events by their old name", "nvmlDeviceGetCurrentClocksEventReasons", "return", []any{13}, nil},
		{"utilization", "nvmlDeviceGetUtilizationRates", "return", []any{3}, []string{"utilization.gpu", "utilization.memory"}},
		{"memory without rights", "nvmlDeviceGetMemoryInfo*", "return", []any{4}, []string{"memory.total", "memory.used", "memory.free", "memory.reserved"}},
	}, 4) {
		scenario(t, c.name, Options{}, func(w *world) {
			w.Fault("0", c.call, c.kind, c.argument...)
			w.right(w.scrape(), c.absent...)
			w.right(w.scrape(), c.absent...)
		})
	}
}

// Without the second version of its function, used memory has the reserved one in it.
func TestMemoryOfTheFirstVersion(t *testing.T) {
	t.Parallel()
	scenario(t, "memory", Options{}, func(w *world) {
		w.Fault("0", "nvmlDeviceGetMemoryInfo_v2", "return", 13)
		should := map[string]float64{}
		memory(should, &w.Truth()[0].Row, 450051)
		values := w.first(w.scrape())
		for _, name := range []string{"memory.total", "memory.used", "memory.free"} {
			assert.Equal(w.T, should[name], values[name], name)
		}
		assert.NotContains(w.T, values, "memory.reserved")
	})
}

// A metric of GPM has a return of its own, and is a number.
func TestReturnsOfGPM(t *testing.T) {
	t.Parallel()
	for _, c := range quick([]struct {
		name, call, kind string
		argument         []any
		absent           bool
	}{
		{"return of a metric", "nvmlGpmMetricsGet(5)", "return", []any{2}, true},
		{"not a number", "gpm.5", "nan", nil, true},
		{"return of metrics", "nvmlGpmMetricsGet", "return", []any{2}, true},
		{"return of the sample", "nvmlGpmSampleGet", "return", []any{4}, true},
		{"support", "nvmlGpmQueryDeviceSupport", "return", []any{3}, true},
		{"another metric", "nvmlGpmMetricsGet(2)", "return", []any{2}, false},
	}, 2) {
		scenario(t, c.name, Options{}, func(w *world) {
			w.Fault("0", c.call, c.kind, c.argument...)
			w.scrape()
			w.helper.Window()
			w.Advance(10 * time.Second)
			a := w.scrape()
			w.right(a)
			_, rates := got(a.Of(w.Lab, 0).Values)
			_, there := rates["gpm.tensor"]
			assert.Equal(w.T, !c.absent || c.kind == "nan", there)
			_, neighbour := got(a.Of(w.Lab, 1).Values)
			assert.Contains(w.T, neighbour, "gpm.tensor")
		})
	}
}

// A board that is lost costs no other board anything, and is asked again.
func TestReturnsOfLostBoards(t *testing.T) {
	t.Parallel()
	for _, returned := range []int{15, 28} {
		for _, call := range quick([]string{power, "nvmlDeviceGetHandleByPciBusId_v2", "*", "nvmlDeviceGetFieldValues", "nvmlDeviceGetUUID", "nvmlDeviceGetMigMode"}, 3) {
			scenario(t, fmt.Sprint(call, "/", returned), Options{}, func(w *world) {
				w.Fault("0", call, "return", returned)
				board := w.scrape().Of(w.Lab, 0)
				require.NotNil(w.T, board)
				assert.True(w.T, board.Lost)
				assert.Empty(w.T, board.Values)
				w.Clear()
				w.right(w.scrape())
			})
		}
	}
}

// What is returned of the library as a whole is the answer.
func TestReturnsOfTheSystem(t *testing.T) {
	t.Parallel()
	for _, c := range quick([]struct {
		call     string
		returned int
	}{{"nvmlInit_v2", 9}, {"nvmlInit_v2", 18}, {"nvmlInit_v2", 4}, {"nvmlInit_v2", 12}, {"nvmlInit_v2", 16}, {"nvmlInit_v2", 999}}, 2) {
		scenario(t, fmt.Sprint(c.call, "/", c.returned), Options{}, func(w *world) {
			w.Fault("-", c.call, "return", c.returned)
			a := w.helper.Scrape(limit)
			require.NotNil(w.T, a.System)
			assert.Equal(w.T, c.returned, a.System.Return)
			assert.NotEmpty(w.T, a.System.Error)
			assert.Equal(w.T, w.Library, a.System.Library)
			assert.Empty(w.T, a.System.Answering)
		})
	}
	scenario(t, "driver's version", Options{}, func(w *world) {
		w.Fault("-", "nvmlSystemGet*", "return", 999)
		a := w.scrape()
		assert.Zero(w.T, a.System.Return)
		assert.Empty(w.T, a.System.Driver)
		w.right(a)
	})
}

// What identifies a board is left out where it cannot be.
func TestBadTexts(t *testing.T) {
	t.Parallel()
	for _, c := range quick([]struct {
		name, key, kind, text string
	}{
		{"serial without end", "serial", "unterminated", ""},
		{"name with control characters", "name", "value", `a\x01b`},
		{"name that is not UTF-8", "name", "value", `a\xff`},
		{"VBIOS without end", "vbios", "unterminated", ""},
	}, 2) {
		scenario(t, c.name, Options{}, func(w *world) {
			w.Fault("0", c.key, c.kind, c.text)
			a := w.scrape()
			w.right(a)
			board := a.Of(w.Lab, 0)
			assert.Empty(w.T, map[string]string{"serial": board.Serial, "name": board.Name, "vbios": board.VBIOS}[c.key])
			assert.True(w.T, slices.ContainsFunc(board.Refused, func(r nvmlproto.Refused) bool { return r.Reason == nvmlproto.ReasonText }), board.Refused)
		})
	}
	scenario(t, "UUID without end", Options{}, func(w *world) {
		w.Fault("0", "uuid", "unterminated")
		board := w.scrape().Of(w.Lab, 0)
		assert.Empty(w.T, board.UUID)
	})
}
