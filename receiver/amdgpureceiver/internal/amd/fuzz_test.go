// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext/pagetexttest"
)

// FuzzMap: no page makes the mapping panic or report something impossible, on the first
// scrape and on later ones.
func FuzzMap(f *testing.F) {
	// Short seeds: the fuzzer spends a minute on making a long one shorter.
	const u = `{gpu_uuid="` + uuid0 + `"`
	const p = u + `,gpu_compute_partition_type="cpx"`
	f.Add("gpu_energy_consumed"+u+"} 5", "gpu_energy_consumed"+u+"} 4")
	f.Add("gpu_used_vram"+p+`,gpu_id="0",gpu_partition_id="0"} 1`, "gpu_used_vram"+p+`,gpu_id="1",gpu_partition_id="0"} 1`)
	f.Add("gpu_violation_current_accumulated_counter"+u+"} 1", "gpu_violation_current_accumulated_counter"+u+"} 1e308")
	f.Add("gpu_afid_errors"+u+`,severity="fatal",afid_index="é"} 1e18`, "amd_gpu_clock"+u+`,clock_type="GPU_CLOCK_TYPE_"} 1`)
	f.Add(`gpu_health{serial_number="x",gpu_id="0"} 1`, `gpu_health{serial_number="x",gpu_id="1"} 1`)
	f.Add(`gpu_nodes_total 1e300`, "gpu_xgmi_link_rx"+u+`,link_index="0"} 1e308`)
	f.Fuzz(func(t *testing.T, first, second string) {
		for _, opts := range []devicemap.Options{{}, {AsIs: true, OTel: true}, {DropUnmapped: true}} {
			e := pagetexttest.New(t, NewVendor(nil), opts)
			for _, page := range []string{first, second, first} {
				r := e.ScrapePage([]byte(page))
				for _, id := range r.IDs(t) {
					if board := deviceid.Parent(id); board != "" {
						assert.Empty(t, deviceid.Parent(board), id)
					}
				}
				if !opts.AsIs {
					checkPoints(t, r)
				}
			}
		}
	})
}

func checkPoints(t *testing.T, r pagetexttest.Result) {
	for _, rm := range r.Metrics.ResourceMetrics().All() {
		seen := map[string]bool{}
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			for _, p := range pagetexttest.NumberPoints(m).All() {
				v := pagetexttest.Value(p)
				assert.False(t, math.IsNaN(v) || math.IsInf(v, 0), "%s is %v", m.Name(), v)
				assert.LessOrEqual(t, p.StartTimestamp(), p.Timestamp(), m.Name())
				key := fmt.Sprint(m.Name(), p.Attributes().AsRaw())
				assert.False(t, seen[key], "twice: %s", key)
				seen[key] = true
				if strings.HasSuffix(m.Name(), "utilization") || m.Name() == "gpu.throttle.ratio" {
					assert.True(t, v >= 0 && v <= 1, "%s is %v", m.Name(), v)
				}
			}
		}
	}
}
