// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/metadatatest"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// healthEvents are the events about health, as "state: hw.state [reasons] action".
func healthEvents(events []occurred) (all []string) {
	for _, e := range events {
		if e.record.EventName() == names.EventHealth {
			all = append(all, fmt.Sprintf("%s: %v %v %v", e.state, e.attrs[names.HwState], e.attrs[names.GPUHealthReasons], e.attrs[names.GPUHealthAction]))
		}
	}
	return all
}

// An event for every change of a board's health, worse or better; none for a board that
// is well from the start, and none twice.
func TestHealthOfABoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet, withHealth)
		ecc := int64(0)
		see := func(values map[*names.Metric]float64, xids map[int64]int64) []string {
			happened := b.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{{id: gpuA, pod: "chat-0", values: values, xids: xids, ecc: &ecc}}}))
			return healthEvents(append(happened, b.wait(15*time.Second)...))
		}
		type is = map[*names.Metric]float64
		assert.Empty(t, see(is{&names.GPURowRemapPending: 0, &names.HwEnergy: 100}, map[int64]int64{119: 1}), "an XID from before is not seen")
		assert.Empty(t, see(is{&names.GPURowRemapPending: 0, &names.HwEnergy: 200}, map[int64]int64{119: 1}))
		for _, tc := range []struct {
			values is
			xids   map[int64]int64
			want   []string
		}{
			{is{&names.GPURowRemapPending: 1, &names.HwEnergy: 300}, map[int64]int64{119: 1}, []string{"raised: degraded [remap_pending] reset_gpu"}},
			{is{&names.GPURowRemapPending: 1, &names.HwEnergy: 400}, map[int64]int64{119: 1}, nil},
			{is{&names.GPURowRemapPending: 1, &names.HwEnergy: 500}, map[int64]int64{119: 1, 79: 1}, []string{"raised: failed [xid_restart remap_pending] reboot_node"}},
			{is{&names.GPURowRemapPending: 0, &names.HwEnergy: 600}, map[int64]int64{119: 1, 79: 1}, []string{"raised: failed [xid_restart] reboot_node"}},
			{is{&names.GPURowRemapPending: 0, &names.HwEnergy: 700}, map[int64]int64{119: 2, 79: 1}, []string{"raised: failed [xid_reset xid_restart] reboot_node"}},
			{is{&names.GPURowRemapPending: 0, &names.HwEnergy: 5}, map[int64]int64{119: 2, 79: 1}, []string{"raised: failed [xid_restart] reboot_node"}},
		} {
			assert.Equal(t, tc.want, see(tc.values, tc.xids))
		}
		boot := func(id string) pmetric.Metrics {
			md := pmetric.NewMetrics()
			rm := md.ResourceMetrics().AppendEmpty()
			rm.Resource().Attributes().PutStr(names.K8sClusterName, "c1")
			rm.Resource().Attributes().PutStr(names.K8sNodeName, "n1")
			p := names.GPUNodeInfo.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
			p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
			p.SetIntValue(1)
			p.Attributes().PutStr(names.GPUNodeBootID, id)
			return md
		}
		assert.Empty(t, healthEvents(b.feed(boot("b1"))), "the first one is no boot")
		assert.Equal(t, []string{"cleared: ok <nil> none"}, healthEvents(b.feed(boot("b2"))))
	})
}

// What a board's health is made of outlives a restart: nothing is reported again, and
// nothing is cleared without evidence.
func TestHealthOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		see := func(b *bench, xids map[int64]int64, energy float64) []string {
			happened := b.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{{
				id: gpuA, values: map[*names.Metric]float64{&names.HwEnergy: energy, &names.GPURowRemapFailure: 0}, xids: xids,
			}}}))
			return healthEvents(append(happened, b.wait(15*time.Second)...))
		}
		b := d.boot(t, deviceSet, withHealth)
		see(b, map[int64]int64{119: 0}, 100)
		assert.Equal(t, []string{"raised: failed [xid_reset] reset_gpu"}, see(b, map[int64]int64{119: 1}, 200))
		b.stop()
		b = d.boot(t, deviceSet, withHealth)
		defer b.stop()
		assert.Empty(t, see(b, map[int64]int64{119: 1}, 300))
		assert.Equal(t, []string{"cleared: ok <nil> none"}, see(b, map[int64]int64{119: 1}, 1), "the GPU was reset")
	})
}

// Where nothing but counters has changed since the state was stored, a stop stores them: a
// GPU that is reset until the next start has smaller ones.
func TestCountersOfAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		b := d.boot(t, deviceSet, withHealth)
		p := patient{b, t}
		p.fall()
		require.Empty(t, p.see(page{gpus: []gpu{sick(gpuA, 1, 9000)}}))
		b.stop()
		b = d.boot(t, deviceSet, withHealth)
		defer b.stop()
		assert.Equal(t, []string{clearedOK}, patient{b, t}.see(page{gpus: []gpu{sick(gpuA, 1, 1200)}}), "more than when it failed, less than at the stop")
	})
}

// The metrics of a board: four states of which one is 1, its reasons, its coverage, and
// the state of its node. They end when nothing is known of it.
func TestHealthMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := createDefaultConfig().(*Config)
		withHealth(cfg)
		deviceSet(cfg)
		into, events := new(consumertest.MetricsSink), new(consumertest.LogsSink)
		tel := componenttest.NewTelemetry()
		settings := metadatatest.NewSettings(tel)
		metrics, err := NewFactory().CreateMetricsToMetrics(t.Context(), settings, cfg, into)
		require.NoError(t, err)
		logs, err := NewFactory().CreateMetricsToLogs(t.Context(), settings, cfg, events)
		require.NoError(t, err)
		for _, c := range []component.Component{metrics, logs} {
			require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
		}
		defer func() {
			for _, c := range []component.Component{logs, metrics} {
				require.NoError(t, c.Shutdown(t.Context()))
			}
			require.NoError(t, tel.Shutdown(t.Context()))
		}()
		see := func(p page, wait time.Duration) []string {
			into.Reset()
			p.at, p.node = time.Now(), "n1"
			md := scrape(p)
			require.NoError(t, metrics.ConsumeMetrics(t.Context(), md))
			require.NoError(t, logs.ConsumeMetrics(t.Context(), md))
			time.Sleep(wait)
			synctest.Wait()
			return seriesOf(into.AllMetrics())
		}
		well := gpu{id: gpuA, values: map[*names.Metric]float64{&names.GPURowRemapFailure: 0}}
		bad := gpu{id: gpuA, values: map[*names.Metric]float64{&names.GPURowRemapFailure: 1}}
		coverage := "gpu.health.coverage <nil> <nil> 0.0"
		short := func(all []string) []string {
			for i := range all {
				if strings.HasPrefix(all[i], "gpu.health.coverage") && !strings.HasSuffix(all[i], "ends") {
					all[i] = coverage
				}
			}
			return all
		}
		assert.Equal(t, []string{"hw.status <nil> ok 1", coverage, "gpu.node.status <nil> ok 1"}, short(see(page{gpus: []gpu{well}}, 15*time.Second)))
		assert.Equal(t, []string{"hw.status <nil> failed 1", "gpu.health.reason remap_failed failed 1", coverage, "gpu.node.status <nil> failed 1"},
			short(see(page{gpus: []gpu{bad}}, 15*time.Second)))
		assert.Len(t, events.AllLogs(), 1, "the pages are read once")
		assert.Equal(t, []string{"gpu.health.reason remap_failed failed ends", "hw.status <nil> ok 1", coverage, "gpu.node.status <nil> ok 1"},
			short(see(page{gpus: []gpu{well}}, 15*time.Second)))
		var ends []string
		for _, s := range []string{"ok", "degraded", "predicted_failure", "failed"} {
			ends = append(ends, "hw.status <nil> "+s+" ends")
		}
		ends = append(ends, "gpu.health.coverage <nil> <nil> ends")
		for _, s := range []string{"ok", "degraded", "predicted_failure", "failed"} {
			ends = append(ends, "gpu.node.status <nil> "+s+" ends")
		}
		assert.Equal(t, ends, see(page{down: true}, 2*time.Minute), "the exporter is down: nothing is known")
		assert.Equal(t, []string{"hw.status <nil> ok 1", coverage, "gpu.node.status <nil> ok 1"}, short(see(page{gpus: []gpu{well}}, 15*time.Second)))
	})
}
