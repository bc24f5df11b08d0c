// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// TestGolden holds whole pages, invented in the exporter's format, against what
// they become. A change of a .yaml file there is a change for every user. golden
// writes sorted and without times: TestOrder and TestCounters are about those.
func TestGolden(t *testing.T) {
	pages, err := filepath.Glob("../../testdata/pages/*.prom")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			text, err := os.ReadFile(page)
			require.NoError(t, err)
			md, err := scrape(string(text), t0)
			require.NoError(t, err)
			r := newTarget(otel).Map(md, here)
			file := page + ".yaml"
			want, err := golden.ReadMetrics(file)
			require.NoError(t, err)
			require.NoError(t, pmetrictest.CompareMetrics(want, r.Metrics, pmetrictest.IgnoreResourceMetricsOrder(),
				pmetrictest.IgnoreMetricsOrder(), pmetrictest.IgnoreMetricDataPointsOrder(),
				pmetrictest.IgnoreTimestamp(), pmetrictest.IgnoreStartTimestamp()))
		})
	}
}

// TestOrder: the order of families on a page has no meaning.
func TestOrder(t *testing.T) {
	opts := otel
	opts.AsIs = true
	for _, page := range []string{"../../testdata/pages/h100.prom", "../../testdata/pages/a100-mig.prom"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		md, err := scrape(string(text), t0)
		require.NoError(t, err)
		marshaler := pmetric.ProtoMarshaler{}
		want, err := marshaler.MarshalMetrics(newTarget(opts).Map(md, here).Metrics)
		require.NoError(t, err)
		for seed := range uint64(20) {
			got, err := marshaler.MarshalMetrics(newTarget(opts).Map(shuffle(md, seed), here).Metrics)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s, seed %d", page, seed)
		}
	}
}

// shuffle copies a page with its families in another order.
func shuffle(p *devicemap.Page, seed uint64) *devicemap.Page {
	rows := map[string][]devicemap.Row{}
	var families []string
	for _, row := range p.Rows {
		f := row.Series.Name()
		if rows[f] == nil {
			families = append(families, f)
		}
		rows[f] = append(rows[f], row)
	}
	out := *p
	out.Rows = nil
	for _, i := range rand.New(rand.NewPCG(seed, seed)).Perm(len(families)) {
		out.Rows = append(out.Rows, rows[families[i]]...)
	}
	return &out
}

// FuzzMap: no page makes Map panic or report something impossible, on the first
// scrape and on later ones.
func FuzzMap(f *testing.F) {
	// Short seeds: the fuzzer spends a minute on making a long one shorter.
	f.Add("# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"+onGPU("DCGM_FI_DEV_GPU_UTIL", 50)+"\n",
		onGPU("DCGM_FI_DEV_POWER_USAGE", "140737488355328.000000")+"\n")
	f.Add(onGPU("DCGM_FI_DEV_XID_ERRORS", 1)+"\n", onGPU("DCGM_FI_DEV_XID_ERRORS", 2)+"\n")
	f.Add(onGPU("DCGM_EXP_XID_ERRORS_TOTAL", 1)+"\n", onGPU("DCGM_EXP_CLOCK_EVENTS_TOTAL", 2)+"\n")
	f.Add(onGPU("DCGM_EXP_GPU_HEALTH_STATUS", "1e18", `health_watch="a"`)+"\n", onGPU("DCGM_EXP_CLOCK_EVENTS_COUNT", 1)+"\n")
	f.Add(onGPU("DCGM_FI_DEV_FB_USED", "1.07e9")+"\n", onMIG(1, "DCGM_FI_DEV_FB_FREE", "1e9")+"\n"+onMIG(1, "DCGM_FI_DEV_FB_USED", "1e9")+"\n")
	f.Add(onGPU(memory, 9)+"\n"+onGPU(memory, 5, `pod="a",vgpu="0"`)+"\n", onGPU(memory, 9, `pod="a",vgpu="0"`)+"\n")
	f.Add("dcgm_a 1\nDCGM_A 2\nup 0\nup{a=\"b\"} NaN\n# TYPE DCGM_A summary\nDCGM_A_sum 1\nDCGM_A{quantile=\"1\"} 2\n", `DCGM_A{UUID="x",pod="a",vgpu="1",pod_label_a="b",hpc_job="c"} 1`+"\n")
	f.Add(`{"DCGM_é",UUID="x","hw.id"="y"} 1`+"\n", `DCGM_FI_DEV_GPU_UTIL{UUID="x",GPU_I_ID="-1",gpu="99999999999999999999"} 1e308`+"\n")
	f.Add(onGPU(utilRatio, "0.5")+"\n"+onGPU("DCGM_FI_DEV_FB_USED_BYTES", "1125899906842623")+"\n", onGPU(utilRatio, 1)+"\n"+onGPU(utilRatio, 37, `hostname="b"`, `DCGM_FI_SYSTEM_DRIVER_VERSION="5"`)+"\n")
	f.Add(onGPU("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 9)+"\n", onGPU("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 8999)+"\n"+onGPU("DCGM_FI_DEV_NVLINK_THROUGHPUT_L3_BYTES_PER_SECOND", 5)+"\n")
	f.Fuzz(func(t *testing.T, first, second string) {
		for _, opts := range []devicemap.Options{otel, {OTel: true, AsIs: true}, {OTel: true, DropUnmapped: true}} {
			target := newTarget(opts)
			for i, text := range []string{first, second, first} {
				md, err := scrape(text, t0.Add(interval*[]time.Duration{0, 2, 1}[i]))
				if err != nil {
					continue
				}
				checkInvariants(t, opts, target.Map(md, here))
			}
		}
	})
}

func checkInvariants(t *testing.T, opts devicemap.Options, r devicemap.Result) {
	ids := map[string]bool{}
	for _, rm := range r.Metrics.ResourceMetrics().All() {
		id, device := text(rm.Resource().Attributes(), names.HwID)
		assert.False(t, ids[id], "two resources for %q", id)
		ids[id] = true
		series := map[string]bool{}
		one := pmetric.NewMetrics()
		rm.CopyTo(one.ResourceMetrics().AppendEmpty())
		each(one, func(_ pcommon.Map, m pmetric.Metric, p pmetric.NumberDataPoint) {
			if of, _ := text(p.Attributes(), names.HwID); device {
				assert.Equal(t, id, of, "hw.id of %s", m.Name())
			}
			v := pointValue(p)
			assert.False(t, math.IsNaN(v) || math.IsInf(v, 0), "%s is %v", m.Name(), v)
			assert.LessOrEqual(t, p.StartTimestamp(), p.Timestamp(), m.Name())
			if m.Name() == names.GPUMemoryUsage.Name || m.Name() == names.GPUMemoryLimit.Name {
				assert.GreaterOrEqual(t, v, 0.0, m.Name())
			}
			if opts.AsIs { // a page may distinguish rows only by a label hw.id
				return
			}
			key := fmt.Sprint(m.Name(), p.Attributes().AsRaw())
			assert.False(t, series[key], "twice: %s", key)
			series[key] = true
		})
	}
}

func text(attrs pcommon.Map, key string) (string, bool) {
	v, ok := attrs.Get(key)
	if !ok {
		return "", false
	}
	return v.Str(), true
}
