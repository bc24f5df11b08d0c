// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
)

const utilRatio = "DCGM_FI_DEV_GPU_UTIL_RATIO"

// ratioOf is a row of GPU_UTIL_RATIO of a GPU, with more labels.
func ratioOf(gpu int, v string, more ...string) string {
	labels := append([]string{fmt.Sprintf(`gpu="%d",UUID="GPU-%d"`, gpu, gpu)}, more...)
	return fmt.Sprintf("%s{%s} %s", utilRatio, strings.Join(labels, ","), v)
}

// utilizations are those of the GPUs of a page, by hw.id.
func utilizations(r devicemap.Result, gpus ...string) (out []string) {
	for _, gpu := range gpus {
		v := "absent"
		for _, line := range points(r, gpu) {
			if text, ok := strings.CutPrefix(line, "hw.gpu.utilization{hw.gpu.task=general} "); ok {
				v = text
			}
		}
		out = append(out, v)
	}
	return out
}

// TestUtilizationRatio: the meaning of a name that DCGM 4.6 has for a percentage and 4.7 for
// a ratio follows from the rest of the page, whatever the order of its rows.
func TestUtilizationRatio(t *testing.T) {
	const (
		oldLabel = `DCGM_FI_DRIVER_VERSION="580.126.09"`
		newLabel = `DCGM_FI_SYSTEM_DRIVER_VERSION="590.44.01"`
	)
	newField, of461 := onGPU("DCGM_FI_DEV_FB_USED_BYTES", 1048576), onGPU("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 12)
	for name, tt := range map[string]struct {
		page    []string
		want    []string // of GPU-0 and GPU-1
		refused int
	}{
		"DCGM 4.6":                                   {[]string{ratioOf(0, "37", oldLabel), ratioOf(1, "0", oldLabel)}, []string{"0.37", "0"}, 0},
		"DCGM 4.6 in its new names alone":            {[]string{ratioOf(0, "37", newLabel), ratioOf(1, "1", newLabel), of461}, []string{"0.37", "0.01"}, 0},
		"DCGM 4.6, idle":                             {[]string{ratioOf(0, "0", oldLabel), ratioOf(1, "1", oldLabel)}, []string{"0", "0.01"}, 0},
		"DCGM 4.6, without labels":                   {[]string{ratioOf(0, "1"), ratioOf(1, "100"), of461}, []string{"0.01", "1"}, 0},
		"DCGM 4.7":                                   {[]string{ratioOf(0, "0.370000", newLabel), ratioOf(1, "1.000000", newLabel), newField}, []string{"0.37", "1"}, 0},
		"DCGM 4.7, idle":                             {[]string{ratioOf(0, "0.000000", newLabel), ratioOf(1, "0.000000", newLabel)}, []string{"0", "0"}, 0},
		"DCGM 4.7, at its limit":                     {[]string{ratioOf(0, "1.000000"), ratioOf(1, "1.000000")}, []string{"1", "1"}, 0},
		"DCGM 4.7 with the old label":                {[]string{ratioOf(0, "0.370000", oldLabel), ratioOf(1, "1.000000", oldLabel)}, []string{"0.37", "1"}, 0},
		"DCGM 4.7 through /federate":                 {[]string{ratioOf(0, "1", newLabel), ratioOf(1, "0", newLabel), newField}, []string{"1", "0"}, 0},
		"a small ratio through /federate":            {[]string{ratioOf(0, "1e-06"), ratioOf(1, "1")}, []string{"1e-06", "1"}, 0},
		"a decimal point and a value above 1":        {[]string{ratioOf(0, "37.000000"), ratioOf(1, "0.000000")}, []string{"absent", "absent"}, 2},
		"a ratio slightly above 1":                   {[]string{ratioOf(0, "1.000001"), ratioOf(1, "0.500000")}, []string{"absent", "absent"}, 2},
		"percentages and ratios":                     {[]string{ratioOf(0, "37"), ratioOf(1, "0.370000")}, []string{"absent", "absent"}, 2},
		"a percentage beside a field of DCGM 4.7":    {[]string{ratioOf(0, "37", oldLabel), ratioOf(1, "0", oldLabel), newField}, []string{"absent", "absent"}, 2},
		"1 without a point beside the new label":     {[]string{ratioOf(0, "1", newLabel), ratioOf(1, "0", newLabel)}, []string{"absent", "0"}, 1},
		"no value":                                   {[]string{ratioOf(0, "140737488355330.000000"), ratioOf(1, "9223372036854775794")}, []string{"absent", "absent"}, 0},
		"no value beside a ratio":                    {[]string{ratioOf(0, "140737488355330.000000"), ratioOf(1, "0.500000")}, []string{"absent", "0.5"}, 0},
		"no value beside a percentage":               {[]string{ratioOf(0, "9223372036854775794"), ratioOf(1, "50")}, []string{"absent", "0.5"}, 0},
		"exporters of both versions on one page":     {[]string{ratioOf(0, "37", `hostname="a"`), ratioOf(1, "0.370000", `hostname="b"`)}, []string{"0.37", "0.37"}, 0},
		"exporters of both versions, 1 and the rest": {[]string{ratioOf(0, "1", `hostname="a"`), ratioOf(1, "1.000000", `hostname="b"`)}, []string{"0.01", "1"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				r := mapOnce(t, otel, tt.page...)
				assert.Equal(t, tt.want, utilizations(r, "GPU-0", "GPU-1"))
				assert.Equal(t, tt.refused, refused(r)["ambiguous"])
				assert.Equal(t, tt.refused > 0, strings.HasPrefix(r.Doubt, utilRatio+": "), r.Doubt)
				slices.Reverse(tt.page)
			}
		})
	}
}

// TestUtilizationRatioStays: a page without values to decide by means what the page before
// meant, while it shows the same version.
func TestUtilizationRatioStays(t *testing.T) {
	type page struct{ value, label, want string }
	const oldLabel, newLabel = `DCGM_FI_DRIVER_VERSION="5"`, `DCGM_FI_SYSTEM_DRIVER_VERSION="5"`
	for name, pages := range map[string][]page{
		"4.7 through /federate":           {{"0", newLabel, "0"}, {"0.37", newLabel, "0.37"}, {"1", newLabel, "1"}, {"0", newLabel, "0"}, {"1", newLabel, "1"}},
		"4.6 with the new label":          {{"1", newLabel, "absent"}, {"37", newLabel, "0.37"}, {"1", newLabel, "0.01"}, {"0", newLabel, "0"}},
		"4.7 is replaced by 4.6":          {{"0.370000", newLabel, "0.37"}, {"1", oldLabel, "0.01"}, {"0", oldLabel, "0"}},
		"4.6 is replaced by 4.7":          {{"37", oldLabel, "0.37"}, {"0.000000", newLabel, "0"}, {"1.000000", newLabel, "1"}},
		"a contradiction decides nothing": {{"37", newLabel, "0.37"}, {"37.000000", newLabel, "absent"}, {"1", newLabel, "0.01"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExporter(t, otel)
			for i, p := range pages {
				assert.Equal(t, []string{p.want}, utilizations(e.scrape(ratioOf(0, p.value, p.label)), "GPU-0"), "page %d", i)
			}
		})
	}
}

// TestUtilizationRatioElsewhere: what is decided holds for the shares of owners, and where
// families leave under the exporter's names nothing is decided.
func TestUtilizationRatioElsewhere(t *testing.T) {
	r := mapOnce(t, otel, onGPU("DCGM_FI_DEV_FB_USED_BYTES", 8000*perMiB), of("a", 0, "DCGM_FI_DEV_FB_USED_BYTES", 5000*perMiB),
		onGPU(utilRatio, "0.700000"), of("a", 0, utilRatio, "0.600000"))
	assert.Equal(t, []any{entry("a", 0, shares(5000, .6))}, resource(r, "GPU-0")["dcgm.holders"])

	both := mapOnce(t, otel, onGPU(memory, 8000), of("a", 0, memory, 5000), onGPU(util, 70), of("a", 0, util, 60),
		onGPU("DCGM_FI_DEV_FB_USED_BYTES", 8000*perMiB+1), of("a", 0, "DCGM_FI_DEV_FB_USED_BYTES", 5000*perMiB+1),
		onGPU(utilRatio, "0.710000"), of("a", 0, utilRatio, "0.610000"))
	assert.Equal(t, []any{entry("a", 0, map[string]any{"hw.gpu.memory.usage": 5000*perMiB + 1, "hw.gpu.utilization": .6})}, resource(both, "GPU-0")["dcgm.holders"])

	asIs := otel
	asIs.OTel, asIs.AsIs = false, true
	assert.Len(t, only(mapOnce(t, asIs, onGPU(utilRatio, "37.000000")), utilRatio), 1)

	r = mapOnce(t, otel, onGPU(utilRatio, "37.000000"), onGPU("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", "0.250000"))
	assert.Equal(t, []string{"0.25"}, utilizations(r, "GPU-0"), "another field has the utilization")
	r = mapOnce(t, otel, onGPU(utilRatio, "37.000000"), onGPU(util, 25))
	assert.Equal(t, []string{"0.25"}, utilizations(r, "GPU-0"), "the name that has one meaning counts")
}

// TestRatiosAboveOne: what is a ratio by its name alone is refused above 1.05, but for fans.
func TestRatiosAboveOne(t *testing.T) {
	r := mapOnce(t, otel, onGPU("DCGM_FI_DEV_MEMORY_UTIL_RATIO", "37.000000"), onGPU("DCGM_FI_DEV_ENC_UTIL_RATIO", "1.050001"),
		onGPU("DCGM_FI_DEV_DEC_UTIL_RATIO", "1.000000"), onGPU("DCGM_FI_DEV_FAN_SPEED_RATIO", "1.100000"), onGPU("DCGM_FI_DEV_FB_USED_BYTES", "1125899906842624"))
	assert.Equal(t, []string{"hw.fan.speed_ratio{} 1.1", "hw.gpu.utilization{hw.gpu.task=decoder} 1"}, points(r, "GPU-0"))
	assert.Equal(t, map[string]int{"implausible": 3}, refused(r))
}
