// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

const amdBoard = "GPU-c3ff88426fc31c9e"

// fleetOfVendors are nodes of NVIDIA, AMD with a divided board, Gaudi and Intel, and
// services of one and of two vendors.
func fleetOfVendors(w *world) {
	whole := func(more map[string]float64) map[string]float64 {
		values := map[string]float64{"utilization": 0.5, "used": 10 * gib, "total": 80 * gib, "power": 300}
		for k, v := range more {
			values[k] = v
		}
		return values
	}
	pipes := map[string]float64{"tensor": 0.2, "sm": 0.4, "dram": 0.3, "fp16": 0.1, "fp32": 0.1}
	w.exporter("nvidia", 1, 0)
	w.gpu(gpu{tags: device("nvidia", uuid+"1", 0, held("ml", "mixed", "mixed-0")), values: whole(pipes)})

	w.exporter("amd", 1, 0)
	w.gpu(gpu{tags: device("amd", amdBoard, 0, tags{queries.Model: "AMD Instinct MI300X", queries.PartitionMode: "cpx_nps4"}), values: whole(nil)})
	part := func(number string, more tags) tags {
		return device("amd", amdBoard+"/"+number, 0, tags{
			queries.Parent: amdBoard, queries.Model: "AMD Instinct MI300X", queries.Partition: number, queries.PartitionMode: "cpx_nps4",
		}.with(more))
	}
	values := map[string]float64{"utilization": 0.5, "used": gib, "total": 24 * gib}
	w.gpu(gpu{tags: part("0", held("ml", "rocm", "rocm-0")), values: values})
	w.gpu(gpu{tags: part("1", held("ml", "mixed", "mixed-1")), values: values})
	w.gpu(gpu{tags: part("10", nil), values: values})
	// With its exporter's profiler on, one more figure is there.
	w.gpu(gpu{tags: device("amd", "GPU-0000000000000001", 1, tags{queries.Model: ""}.with(held("ml", "profiled", "profiled-0"))), values: whole(map[string]float64{"tensor": 0.2})})

	w.exporter("gaudi", 1, 0)
	w.gpu(gpu{tags: device("gaudi", "GAUDI-AN123", 0, tags{queries.Model: ""}.with(held("ml", "habana", "habana-0"))), values: whole(nil)})
	w.exporter("intel", 1, 0)
	w.gpu(gpu{tags: device("intel", "PCI-intel@0000:4d:00.0", 0, tags{queries.Model: "Arc Pro B60"}), values: whole(nil)})

	for _, name := range []string{"mixed", "rocm", "profiled", "habana"} {
		w.service(svc{cluster: "c1", namespace: "ml", name: name, pods: pods{reporting: 1}}) // gpu_summary has no figure of a pipe
	}
}

func TestVendors(t *testing.T) {
	w := newWorld(t)
	fleetOfVendors(w)
	c := serveAPI(t, w.store, w.now, nil)
	none := []string{"tensor", "sm", "dram", "fp16", "fp32"}

	type row struct{ vendor, model, profile, part string }
	devices := map[string]consoleapi.Device{}
	var order []string
	for _, n := range ok[consoleapi.NodesAnswer](c, "nodes", nil).Nodes {
		for _, d := range n.Devices {
			devices[d.ID] = d
			if n.Node == "amd" {
				order = append(order, d.ID)
			}
		}
	}
	assert.Equal(t, []string{amdBoard, amdBoard + "/0", amdBoard + "/1", amdBoard + "/10", "GPU-0000000000000001"}, order, "partitions are behind their board")
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	for id, want := range map[string]row{
		uuid + "1":               {"NVIDIA", "NVIDIA H100", "", ""},
		amdBoard:                 {"AMD", "AMD Instinct MI300X", "cpx_nps4", ""},
		amdBoard + "/10":         {"AMD", "AMD Instinct MI300X", "cpx_nps4", "10"},
		"GPU-0000000000000001":   {"AMD", "", "", ""},
		"GAUDI-AN123":            {"Intel", "Gaudi", "", ""},
		"PCI-intel@0000:4d:00.0": {"Intel", "Arc Pro B60", "", ""},
	} {
		d, found := devices[id]
		require.True(t, found, id)
		assert.Equal(t, want, row{text(d.Vendor), text(d.Model), text(d.PartitionProfile), text(d.Partition)}, id)
		lacks := none
		switch id {
		case uuid + "1":
			lacks = []string{}
		case "GPU-0000000000000001":
			lacks = none[1:]
		}
		assert.Equal(t, lacks, d.NotMeasured, id)
	}
	assert.Equal(t, consoleapi.DeviceSplit, devices[amdBoard].State)
	assert.Equal(t, consoleapi.DeviceHeld, devices[amdBoard+"/1"].State)

	pods := func(service string) []consoleapi.Pod {
		return ok[consoleapi.PodsAnswer](c, "pods", url.Values{"cluster": {"c1"}, "namespace": {"ml"}, "service": {service}}).Pods
	}
	assert.Equal(t, none, pods("rocm")[0].NotMeasured)
	assert.Nil(t, pods("rocm")[0].Coverage.Tensor, "no device of the pod should have it")
	assert.Equal(t, none[1:], pods("profiled")[0].NotMeasured)
	assert.Equal(t, &consoleapi.Coverage{Devices: 1, Of: 1}, pods("profiled")[0].Coverage.Tensor)
	for _, s := range ok[consoleapi.ServicesAnswer](c, "services", nil).Services {
		want := map[string][]string{"mixed": {}, "rocm": none, "habana": none, "profiled": none}[s.Service]
		assert.Equal(t, want, s.NotMeasured, s.Service)
	}
	lines := ok[consoleapi.DeviceRangeAnswer](c, "device_range", url.Values{"cluster": {"c1"}, "device": {amdBoard}, "window": {"30m"}}).Devices
	require.Len(t, lines, 4)
	assert.Equal(t, "10", text(lines[3].Partition))
}
