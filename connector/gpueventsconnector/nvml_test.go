// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// nvml is a scrape of the nvml receiver on a node.
func nvml(node string, gpus ...gpu) pmetric.Metrics {
	return scrape(page{at: time.Now(), node: node, address: "nvml", port: -1, gpus: gpus})
}

func (b *bench) next(md pmetric.Metrics) []string {
	b.t.Helper()
	return append(brief(b.feed(md)), brief(b.wait(interval))...)
}

// While nvml has released the driver of a node nothing is known of its GPUs, and neither they
// nor the node are lost.
func TestDriverReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		a, c := gpu{id: gpuA}, gpu{id: gpuB}
		for range 4 {
			require.Empty(t, b.next(nvml("n1", a, c)))
		}
		for range 40 { // ten minutes
			require.Empty(t, b.next(nodeReport(time.Now(), "n1", map[*names.Metric]float64{&names.GPUDriverReleased: 1})))
		}
		md := nvml("n1", a)
		nodeReport(time.Now(), "n1", map[*names.Metric]float64{&names.GPUDriverReleased: 0}).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
		require.Empty(t, b.next(md), "one scrape without a device decides nothing")
		require.Empty(t, b.next(nvml("n1", a, c)))

		require.Empty(t, b.next(nodeReport(time.Now(), "n1", map[*names.Metric]float64{&names.GPUDriverReleased: 1})))
		require.Equal(t, []string{"gpu.node.lost raised"}, brief(b.wait(3*time.Minute)), "silence is another thing")
	})
}

// A GPU that is suspended is not lost, whether or not anything else is known of it, also after
// a restart.
func TestSuspendedDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		b := d.boot(t, deviceSet)
		asleep := gpu{id: gpuA, blank: true, points: []reading{{of: &names.GPUDeviceSuspended, value: 1}}}
		awake := gpu{id: gpuA, points: []reading{{of: &names.GPUDeviceSuspended, value: 0}}}
		silent := awake
		silent.blank = true
		run := func(n int, g gpu) (all []string) {
			for range n {
				all = append(all, b.next(nvml("n1", g))...)
			}
			return all
		}
		require.Empty(t, run(3, awake))
		require.Empty(t, run(20, asleep))
		b.stop()
		b = d.boot(t, deviceSet)
		defer func() { b.stop() }()
		require.Empty(t, run(20, asleep))
		require.Empty(t, run(3, awake))
		require.Empty(t, run(2, asleep))
		require.Equal(t, []string{"gpu.device.lost raised"}, run(5, silent), "awake, and nothing is read")
		require.Equal(t, []string{"gpu.device.lost cleared"}, run(5, asleep), "it is there")
	})
}

// nvml beside an exporter is another exporter, without a port: neither misses what the other
// has, and each is down alone.
func TestExporterWithoutPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet)
		var events []occurred
		for i := range 12 {
			events = append(events, b.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{{id: gpuA}}}))...)
			events = append(events, b.wait(time.Second)...)
			events = append(events, b.feed(scrape(page{at: time.Now(), node: "n1", address: "nvml", port: -1, down: i >= 4, gpus: []gpu{
				{id: gpuA, blank: true, points: []reading{{of: &names.GPUDeviceSuspended, value: 0}}},
			}}))...)
			events = append(events, b.wait(interval-time.Second)...)
		}
		require.Equal(t, []string{"gpu.exporter.down raised down"}, brief(events))
		down := events[0]
		require.Equal(t, "gpu.exporter.down/c1/n1/nvml", down.attrs[names.GPUEventKey])
		require.Equal(t, map[string]any{names.K8sClusterName: "c1", names.K8sNodeName: "n1", names.ServerAddress: "nvml"}, down.resource)
		require.Equal(t, "The exporter at nvml on node n1 does not answer: nothing is known about its GPUs.", down.body)
		id := subject.ExporterID{Cluster: "c1", Node: "n1", Address: "nvml"}
		again, ok := subject.ExporterNamed("c1", "n1", id.Name())
		require.True(t, ok)
		require.Equal(t, id, again, "a restart knows it again")
	})
}
