// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvidia"
)

// TestResource has one row a spelling: the labels of a row and the resource that
// they give.
func TestResource(t *testing.T) {
	base := map[string]any{"hw.id": "GPU-0", "hw.type": "gpu", "hw.vendor": "NVIDIA"}
	for _, tt := range []struct {
		name, labels string
		want         map[string]any
	}{
		{"DCGM 4", `gpu="3",UUID="GPU-0",pci_bus_id="00000000:A8:00.0",device="nvidia3",modelName="NVIDIA H100",hostname="node-a",DCGM_FI_DRIVER_VERSION="580.1"`, map[string]any{
			"gpu.index": int64(3), "gpu.pci.address": "0000:a8:00.0", "hw.model": "NVIDIA H100", "host.name": "node-a", "hw.driver_version": "580.1",
		}},
		{"old namespace", `gpu="3",uuid="GPU-0",Hostname="node-a",pod_name="p",pod_namespace="n",container_name="c"`, map[string]any{
			"gpu.index": int64(3), "host.name": "node-a", "pod": "p", "namespace": "n", "container": "c",
		}},
		{"link", `gpu_uuid="GPU-0",model_name="NVIDIA H100"`, map[string]any{"hw.model": "NVIDIA H100"}},
		{"holder", `UUID="GPU-0",pod="p",namespace="n",container="c",pod_uid="u"`, map[string]any{"pod": "p", "namespace": "n", "container": "c", "pod_uid": "u"}},
		{"after a scrape that renamed them", `UUID="GPU-0",pod="exporter-x",namespace="gpu-operator",container="exporter",exported_pod="p",exported_namespace="n"`, map[string]any{
			"pod": "p", "namespace": "n",
		}},
		{"renamed and empty", `UUID="GPU-0",pod="p",exported_pod=""`, map[string]any{"pod": "p"}},
		{"renamed sentinel", `UUID="GPU-0",exported_namespace="n",exported_pod="<<<NULL>>>"`, map[string]any{"namespace": "n"}},
		{"pod labels, job and claim", `UUID="GPU-0",pod="p",pod_label_app="llm",hpc_job="7",dra_claim_name="claim"`, map[string]any{
			"pod": "p", "pod_label_app": "llm", "hpc_job": "7", "dra_claim_name": "claim",
		}},
		{"pod labels of older exporters", `UUID="GPU-0",pod="p",app="llm",app_kubernetes_io_name="chat",pod_label_app="llm"`, map[string]any{
			"pod": "p", "pod_label_app": "llm", "pod_label_app_kubernetes_io_name": "chat",
		}},
		{"empty labels are absent labels", `UUID="GPU-0",gpu="",modelName="",pod="",namespace="",container="",DCGM_FI_DEV_SERIAL=""`, nil},
		{"fields of type label", `UUID="GPU-0",DCGM_FI_SYSTEM_DRIVER_VERSION="580.1",DCGM_FI_DEV_BOARD_SERIAL="165",DCGM_FI_DEV_VBIOS_VERSION="96.00",DCGM_FI_DEV_BRAND="Tesla",DCGM_FI_NVML_VERSION="12"`, map[string]any{
			"hw.driver_version": "580.1", "hw.serial_number": "165", "hw.firmware_version": "96.00", "dcgm.dev_brand": "Tesla", "dcgm.nvml_version": "12",
		}},
		{"leaked sentinels", `UUID="GPU-0",modelName="<<<NOT_SUPPORTED>>>",DCGM_FI_DEV_SERIAL="<<<NOT_PERM>>>",DCGM_FI_DEV_BRAND="<<<NULL>>>"`, nil},
		{"an index that is none", `UUID="GPU-0",gpu="x",modelName="<a>"`, map[string]any{"hw.model": "<a>"}},
		{"quotes, newlines, UTF-8", `UUID="GPU-0",modelName="a \"b\"\nc\\d ü 大"`, map[string]any{"hw.model": "a \"b\"\nc\\d ü 大"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := map[string]any{}
			for _, m := range []map[string]any{base, tt.want} {
				for k, v := range m {
					want[k] = v
				}
			}
			r := mapOnce(t, otel, "DCGM_FI_DEV_GPU_UTIL{"+tt.labels+"} 50")
			assert.Equal(t, want, resource(r, "GPU-0"))
			assert.Equal(t, []string{"hw.gpu.utilization{hw.gpu.task=general} 0.5"}, points(r, "GPU-0"))
		})
	}
}

func TestConfiguredNode(t *testing.T) {
	opts := otel
	opts.NodeName, opts.ClusterName = "node-a", "prod"
	page := onGPU("DCGM_FI_DEV_GPU_UTIL", 50)
	res := resource(mapOnce(t, opts, page), "GPU-0")
	assert.Equal(t, "node-a", res["k8s.node.name"])
	assert.Equal(t, "prod", res["k8s.cluster.name"])
	md, err := scrape(page+"\n", t0)
	assert.NoError(t, err)
	res = resource(newTarget(opts).Map(md, devicemap.Exporter{Node: "node-b"}), "GPU-0")
	assert.Equal(t, "node-b", res["k8s.node.name"], "discovery knows it better")
}

// TestModels: several models on one page, and rows of one device that differ in
// what they report about it.
func TestModels(t *testing.T) {
	r := mapOnce(t, otel,
		`DCGM_FI_DEV_GPU_UTIL{UUID="GPU-0",modelName="NVIDIA H100"} 1`,
		`DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1",modelName="NVIDIA L4"} 2`,
		`DCGM_FI_DEV_GPU_TEMP{UUID="GPU-0",DCGM_FI_DRIVER_VERSION="580"} 3`,
	)
	assert.Equal(t, "NVIDIA H100", resource(r, "GPU-0")["hw.model"])
	assert.Equal(t, "580", resource(r, "GPU-0")["hw.driver_version"])
	assert.Equal(t, "NVIDIA L4", resource(r, "GPU-1")["hw.model"])
	assert.NotContains(t, resource(r, "GPU-1"), "hw.driver_version")
}

// TestShared: the owners of a shared device own none of its series.
func TestShared(t *testing.T) {
	util := func(labels string, v int) string {
		return onGPU("DCGM_FI_DEV_GPU_UTIL", v, labels)
	}
	for _, tt := range []struct {
		name   string
		page   []string
		owners []any
	}{
		{"replicas", []string{util(`pod="b",namespace="n",vgpu="1"`, 40), util(`pod="a",namespace="n",vgpu="0"`, 40)}, []any{
			map[string]any{"pod": "a", "namespace": "n", "vgpu": "0"},
			map[string]any{"pod": "b", "namespace": "n", "vgpu": "1"},
		}},
		{"one pod with two replicas", []string{util(`pod="a",vgpu="0"`, 40), util(`pod="a",vgpu="1"`, 40)}, []any{
			map[string]any{"pod": "a", "vgpu": "0"},
			map[string]any{"pod": "a", "vgpu": "1"},
		}},
		{"one replica in use", []string{util(`pod="a",vgpu="0"`, 40)}, []any{map[string]any{"pod": "a", "vgpu": "0"}}},
		{"two pods", []string{util(`pod="b"`, 40), util(`pod="a"`, 30)}, []any{map[string]any{"pod": "a"}, map[string]any{"pod": "b"}}},
		{"two jobs", []string{util(`hpc_job="7"`, 40), util(`hpc_job="8"`, 40)}, []any{map[string]any{"hpc_job": "7"}, map[string]any{"hpc_job": "8"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := mapOnce(t, otel, tt.page...)
			res := resource(r, "GPU-0")
			assert.Equal(t, tt.owners, res["dcgm.holders"])
			for _, key := range []string{"pod", "namespace", "vgpu", "hpc_job"} {
				assert.NotContains(t, res, key)
			}
			assert.Equal(t, []string{"hw.gpu.utilization{hw.gpu.task=general} 0.4"}, points(r, "GPU-0"), "once, not once a holder")
		})
	}
}

// TestOneOwner: rows with more and fewer labels of one owner are one owner.
func TestOneOwner(t *testing.T) {
	rows := []string{
		onGPU("DCGM_FI_DEV_GPU_UTIL", 40, `pod="a"`),
		onGPU("DCGM_FI_DEV_GPU_TEMP", 40, `pod="a",pod_uid="u",pod_label_b="2"`),
		onGPU("DCGM_FI_DEV_POWER_USAGE", 40, `pod="a",pod_label_a="1"`),
	}
	for _, page := range [][]string{{rows[0], rows[1], rows[2]}, {rows[2], rows[1], rows[0]}, {rows[1], rows[0], rows[2]}} {
		res := resource(mapOnce(t, otel, page...), "GPU-0")
		for key, want := range map[string]string{"pod": "a", "pod_uid": "u", "pod_label_a": "1", "pod_label_b": "2"} {
			assert.Equal(t, want, res[key], key)
		}
		assert.NotContains(t, res, "dcgm.holders")
	}
}

func TestMIGUUID(t *testing.T) {
	r := mapOnce(t, otel, onGPU("DCGM_FI_DEV_FB_USED", 1, `GPU_I_ID="7"`, `dra_mig_device_uuid="MIG-a"`))
	assert.Equal(t, "MIG-a", resource(r, "GPU-0/7")["gpu.mig.uuid"])
	assert.NotContains(t, resource(r, "GPU-0"), "gpu.mig.uuid")
}

// TestClaimOfAPart: with DRA, old exporters print the rows of a board for each claim of a part,
// without the instance (dcgm-exporter#532). The owner of a claim has the part, not the board.
func TestClaimOfAPart(t *testing.T) {
	claim := func(pod string) string {
		return fmt.Sprintf(`pod=%q,namespace="ml",dra_claim_name="c-%s",dra_mig_device_uuid="MIG-%s",dra_mig_profile="1g.12gb"`, pod, pod, pod)
	}
	for name, page := range map[string][]string{
		"one":                  {onGPU("DCGM_FI_DEV_POWER_USAGE", 200, claim("a")), onGPU("DCGM_FI_DEV_FB_USED", 9000, claim("a"))},
		"some rows without it": {onGPU("DCGM_FI_DEV_POWER_USAGE", 200), onGPU("DCGM_FI_DEV_FB_USED", 9000, claim("a")), onGPU("DCGM_FI_DEV_GPU_TEMP", 40, `pod="a",namespace="ml"`)},
	} {
		r := mapOnce(t, otel, page...)
		res := resource(r, "GPU-0")
		assert.NotContains(t, res, "pod", name)
		assert.NotContains(t, res, "dra_claim_name", name)
		if !assert.Len(t, res["dcgm.holders"], 1, name) {
			continue
		}
		assert.Equal(t, "a", res["dcgm.holders"].([]any)[0].(map[string]any)["pod"], name)
		assert.Contains(t, points(r, "GPU-0"), "hw.power{} 200", name)
	}
	res := resource(mapOnce(t, otel, onGPU("DCGM_FI_DEV_FB_USED", 1, claim("a")), onGPU("DCGM_FI_DEV_FB_USED", 1, claim("b"))), "GPU-0")
	assert.Len(t, res["dcgm.holders"], 2)
	r := mapOnce(t, otel, onGPU("DCGM_FI_DEV_FB_USED", 1, `GPU_I_ID="7"`, claim("a")))
	assert.Equal(t, "a", resource(r, "GPU-0/7")["pod"], "the instance is known")
	r = mapOnce(t, otel, onGPU("DCGM_FI_DEV_FB_USED", 1, `pod="a",dra_claim_name="c",dra_device_name="gpu-0"`))
	assert.Equal(t, "a", resource(r, "GPU-0")["pod"], "the claim is for the board")
}

func TestLimits(t *testing.T) {
	t.Run("devices", func(t *testing.T) {
		var page []string
		for i := range devicemap.MaxDevices + 10 {
			page = append(page, fmt.Sprintf(`DCGM_FI_DEV_GPU_UTIL{UUID="GPU-%04d"} 50`, i))
		}
		r := mapOnce(t, otel, page...)
		assert.Equal(t, devicemap.MaxDevices, r.Devices)
		assert.Equal(t, map[string]int{"limit": 10}, refused(r))
	})
	t.Run("instances", func(t *testing.T) {
		var page []string
		for i := range devicemap.MaxDevices + 10 {
			page = append(page, onMIG(i, "DCGM_FI_DEV_FB_USED", 1))
		}
		r := mapOnce(t, otel, page...)
		assert.Equal(t, devicemap.MaxDevices, r.Devices)
		assert.Equal(t, map[string]int{"limit": 11}, refused(r))
		assert.Equal(t, Vendor.OverDevices(), r.Over)
	})
	t.Run("holders", func(t *testing.T) {
		var page []string
		for i := range devicemap.MaxOwners + 5 {
			page = append(page, onGPU("DCGM_FI_DEV_GPU_UTIL", 50, fmt.Sprintf(`pod="p%d"`, i)))
		}
		r := mapOnce(t, otel, page...)
		assert.Len(t, resource(r, "GPU-0")["dcgm.holders"], devicemap.MaxOwners)
		assert.Equal(t, map[string]int{"limit": 5}, refused(r))
		assert.Equal(t, devicemap.OverOwners, r.Over)
	})
	t.Run("unknown series", func(t *testing.T) {
		var page []string
		for i := range devicemap.MaxUnmapped + 5 {
			page = append(page, onGPU("DCGM_FI_SOME_FIELD", 1, fmt.Sprintf(`link="%d"`, i)))
		}
		r := mapOnce(t, otel, page...)
		assert.Len(t, points(r, "GPU-0"), devicemap.MaxUnmapped)
		assert.Equal(t, map[string]int{"limit": 5}, refused(r))
		assert.Equal(t, devicemap.OverUnmapped, r.Over)
	})
	t.Run("XID codes", func(t *testing.T) {
		var page []string
		for i := range nvidia.MaxXIDCodes + 5 {
			page = append(page, onGPU("DCGM_EXP_XID_ERRORS_TOTAL", 1, fmt.Sprintf(`xid="%d"`, i)))
		}
		r := mapOnce(t, otel, page...)
		assert.Len(t, only(r, "gpu.xid.errors"), nvidia.MaxXIDCodes)
		assert.Equal(t, map[string]int{"limit": 5}, refused(r))
		assert.Equal(t, nvidia.OverXIDCodes, r.Over)

		e := newExporter(t, otel)
		for i := range nvidia.MaxXIDCodes + 6 {
			r = e.scrape(onGPU("DCGM_FI_DEV_XID_ERRORS", i+1))
		}
		assert.Len(t, only(r, "gpu.xid.errors"), nvidia.MaxXIDCodes)
		assert.Equal(t, map[string]int{"limit": 1}, refused(r), "on the last page")
	})
}
