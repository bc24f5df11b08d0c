// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
)

const (
	memory = "DCGM_FI_DEV_FB_USED"
	util   = "DCGM_FI_DEV_GPU_UTIL"
	perMiB = int64(mib)
)

// of is a row of family for a replica that a pod holds.
func of(pod string, vgpu int, family string, v any, more ...string) string {
	return onGPU(family, v, append(more, fmt.Sprintf(`pod="%s",namespace="n",container="c",vgpu="%d"`, pod, vgpu))...)
}

// entry is the entry of "dcgm.holders" for that pod.
func entry(pod string, vgpu int, shares map[string]any) any {
	e := map[string]any{"pod": pod, "namespace": "n", "container": "c", "vgpu": fmt.Sprint(vgpu)}
	for k, v := range shares {
		e[k] = v
	}
	return e
}

func shares(usage int64, utilization float64) map[string]any {
	return map[string]any{"hw.gpu.memory.usage": usage * perMiB, "hw.gpu.utilization": utilization}
}

// TestShares: what a page contains about the owners of a shared device, by the
// exporter's generation. The device's own series are the same with all of them.
func TestShares(t *testing.T) {
	whole := []string{onGPU(memory, 8000), onGPU(util, 70)}
	onlyMemory := func(v int64) map[string]any { return map[string]any{"hw.gpu.memory.usage": v * perMiB} }
	for _, tt := range []struct {
		name   string
		page   []string
		owners []any
	}{
		{"before 4.6: the device's value on each row", []string{
			of("a", 0, memory, 8000), of("b", 1, memory, 8000), of("a", 0, util, 70), of("b", 1, util, 70),
		}, []any{entry("a", 0, nil), entry("b", 1, nil)}},
		{"4.6", append(slices.Clone(whole),
			of("a", 0, memory, 5000), of("b", 1, memory, 3000), of("a", 0, util, 60), of("b", 1, util, 10),
		), []any{entry("a", 0, shares(5000, .6)), entry("b", 1, shares(3000, .1))}},
		{"4.6, the device's row last", append([]string{of("a", 0, memory, 5000), of("a", 0, util, 60)}, whole...),
			[]any{entry("a", 0, shares(5000, .6))}},
		{"under the new name", []string{
			onGPU(memory, 8000), onGPU("DCGM_FI_DEV_GPU_UTIL_RATIO", 70), of("a", 0, "DCGM_FI_DEV_GPU_UTIL_RATIO", 60),
		}, []any{entry("a", 0, map[string]any{"hw.gpu.utilization": .6})}},
		{"0 is a share", append(slices.Clone(whole), of("a", 0, memory, 8000), of("b", 1, memory, 0), of("a", 0, util, 70), of("b", 1, util, 0)),
			[]any{entry("a", 0, shares(8000, .7)), entry("b", 1, shares(0, 0))}},
		{"one family of each kind", append(slices.Clone(whole[:1]), of("a", 0, memory, 5000), of("a", 0, util, 70), of("b", 1, util, 70)),
			[]any{entry("a", 0, onlyMemory(5000)), entry("b", 1, nil)}},
		{"one field under two names of different kinds", []string{
			onGPU(memory, 8000), onGPU("DCGM_FI_DEV_GPU_UTIL_RATIO", 70), of("a", 0, util, 70),
		}, []any{entry("a", 0, nil)}},
		{"other fields are never shares", append(slices.Clone(whole), onGPU("DCGM_FI_DEV_POWER_USAGE", 300), of("a", 0, "DCGM_FI_DEV_POWER_USAGE", 100),
			onGPU("DCGM_FI_DEV_FB_FREE", 300), of("a", 0, "DCGM_FI_DEV_FB_FREE", 100)), []any{entry("a", 0, nil)}},
		{"rows without a replica's number", append(slices.Clone(whole), onGPU(memory, 5000, `pod="a"`), onGPU(memory, 3000, `pod="b"`)),
			[]any{map[string]any{"pod": "a"}, map[string]any{"pod": "b"}}},
		{"sentinels", append(slices.Clone(whole), of("a", 0, memory, int64(9223372036854775792)), of("a", 0, util, 60), of("b", 1, memory, 3000), of("b", 1, util, "NaN")),
			[]any{entry("a", 0, map[string]any{"hw.gpu.utilization": .6}), entry("b", 1, onlyMemory(3000))}},
		{"two rows that contradict each other", append(slices.Clone(whole), of("a", 0, memory, 5000), of("a", 0, memory, 4000, `pod_uid="u"`), of("b", 1, memory, 3000)),
			[]any{entry("a", 0, map[string]any{"pod_uid": "u"}), entry("b", 1, onlyMemory(3000))}},
		{"two rows that agree", append(slices.Clone(whole), of("a", 0, memory, 5000), of("a", 0, memory, 5000, `pod_uid="u"`)),
			[]any{entry("a", 0, map[string]any{"pod_uid": "u", "hw.gpu.memory.usage": 5000 * perMiB})}},
		{"an exporter that sees no process", append(slices.Clone(whole), of("a", 0, memory, 0), of("b", 1, memory, 0), of("a", 0, util, 0), of("b", 1, util, 0)),
			[]any{entry("a", 0, nil), entry("b", 1, nil)}},
		{"nothing to see", []string{
			onGPU(memory, 0), onGPU(util, 0), of("a", 0, memory, 0), of("a", 0, util, 0),
		}, []any{entry("a", 0, shares(0, 0))}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := mapOnce(t, otel, tt.page...)
			assert.Equal(t, tt.owners, resource(r, "GPU-0")["dcgm.holders"])
			if slices.Contains(tt.page, whole[0]) {
				assert.Equal(t, []string{"hw.gpu.memory.usage{} 8388608000"}, only(r, "hw.gpu.memory.usage"), "the device's own")
			}
			if slices.Contains(tt.page, whole[1]) {
				assert.Equal(t, []string{"hw.gpu.utilization{hw.gpu.task=general} 0.7"}, only(r, "hw.gpu.utilization"), "the device's own")
			}
		})
	}
}

// TestSharesPerDevice: the row of one device has no effect on another, and
// neither does a page about the next.
func TestSharesPerDevice(t *testing.T) {
	e := newExporter(t, otel)
	other := func(family string, v int) string {
		return fmt.Sprintf(`%s{UUID="GPU-1",pod="b",namespace="n",container="c",vgpu="1"} %d`, family, v)
	}
	instance := `GPU_I_ID="7",GPU_I_PROFILE="3g.20gb"`
	r := e.scrape(onGPU(memory, 8000), of("a", 0, memory, 5000), other(memory, 6000),
		onGPU(memory, 900, instance), of("m", 0, memory, 400, instance))
	assert.Equal(t, []any{entry("a", 0, map[string]any{"hw.gpu.memory.usage": 5000 * perMiB})}, resource(r, "GPU-0")["dcgm.holders"])
	assert.Equal(t, []any{entry("b", 1, nil)}, resource(r, "GPU-1")["dcgm.holders"])
	assert.Equal(t, []any{entry("m", 0, map[string]any{"hw.gpu.memory.usage": 400 * perMiB})}, resource(r, "GPU-0/7")["dcgm.holders"])

	r = e.scrape(of("a", 0, memory, 8000), other(memory, 6000))
	assert.Equal(t, []any{entry("a", 0, nil)}, resource(r, "GPU-0")["dcgm.holders"], "an older exporter took over")
}

// TestSharesWithDCGMNames: the rows are there as they are, so nothing else is
// made of them.
func TestSharesWithDCGMNames(t *testing.T) {
	r := mapOnce(t, devicemap.Options{AsIs: true}, onGPU(memory, 8000), of("a", 0, memory, 5000))
	assert.Equal(t, []any{entry("a", 0, nil)}, resource(r, "GPU-0")["dcgm.holders"])
	assert.Len(t, points(r, "GPU-0"), 2)
}

// TestSharesBeyondTheLimit: an owner that is not in the list has no share.
func TestSharesBeyondTheLimit(t *testing.T) {
	page := []string{onGPU(memory, 8000)}
	for i := range devicemap.MaxOwners + 5 {
		page = append(page, of(fmt.Sprintf("p%03d", i), i, memory, 10))
	}
	r := mapOnce(t, otel, page...)
	list := resource(r, "GPU-0")["dcgm.holders"].([]any)
	assert.Len(t, list, devicemap.MaxOwners)
	for _, e := range list {
		assert.Equal(t, 10*perMiB, e.(map[string]any)["hw.gpu.memory.usage"])
	}
	assert.Equal(t, map[string]int{"limit": 5}, refused(r))
}
