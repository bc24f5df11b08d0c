// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package deviceid

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const (
	gpu = "GPU-be839661-c0f5-7452-284b-b875666df60c"
	mig = "MIG-41f3a1a5-5d1a-5a86-b7a5-1d6b4f0b2c11"
)

func TestParseKubelet(t *testing.T) {
	unknown := func(id string) Kubelet { return Kubelet{ID: id, Device: id} }
	for id, want := range map[string]Kubelet{
		gpu:                                 {ID: gpu, Device: gpu, Resolved: true},
		gpu + "::0":                         {ID: gpu + "::0", Device: gpu, Shared: true, Resolved: true},
		gpu + "::15":                        {ID: gpu + "::15", Device: gpu, Shared: true, Resolved: true},
		"MIG-" + gpu + "/7/0":               {ID: gpu + "/7", Device: gpu + "/7", Resolved: true},
		"MIG-" + gpu + "/7/0::2":            {ID: gpu + "/7::2", Device: gpu + "/7", Shared: true, Resolved: true},
		mig:                                 {ID: mig, Device: mig, MIG: mig},
		mig + "::3":                         {ID: mig + "::3", Device: mig, Shared: true, MIG: mig},
		"nvidia0":                           unknown("nvidia0"),
		"nvidia0/gi7":                       unknown("nvidia0/gi7"),
		"nvidia0/vgpu1":                     {ID: "nvidia0/vgpu1", Device: "nvidia0", Shared: true},
		"nvidia12/gi7/vgpu1":                {ID: "nvidia12/gi7/vgpu1", Device: "nvidia12/gi7", Shared: true},
		"all":                               unknown("all"),
		"all::1":                            {ID: "all::1", Device: "all", Shared: true},
		"0000:19:00.0":                      unknown("0000:19:00.0"),
		"amdgpu_xcp_3":                      unknown("amdgpu_xcp_3"),
		"card0-1":                           unknown("card0-1"),
		"":                                  unknown(""),
		"::":                                unknown("::"),
		gpu + "::":                          unknown(gpu + "::"),
		gpu + "::x":                         unknown(gpu + "::x"),
		gpu + "::1::2":                      unknown(gpu + "::1::2"),
		gpu + "::12345678901":               unknown(gpu + "::12345678901"),
		gpu + "-0":                          {ID: gpu + "-0", Device: gpu, Shared: true}, // HAMi
		gpu + "-12":                         {ID: gpu + "-12", Device: gpu, Shared: true},
		gpu + "-":                           unknown(gpu + "-"),
		gpu + "-x":                          unknown(gpu + "-x"),
		gpu + "-1-2":                        unknown(gpu + "-1-2"),
		gpu + "--1":                         unknown(gpu + "--1"),
		gpu + "-12345678901":                unknown(gpu + "-12345678901"),
		"GPU-a-1":                           unknown("GPU-a-1"),
		mig + "-1":                          unknown(mig + "-1"),
		gpu + "[1-0]":                       unknown(gpu + "[1-0]"),
		gpu + "/7":                          unknown(gpu + "/7"),
		"GPU-a":                             unknown("GPU-a"),
		strings.ToLower(gpu):                unknown(strings.ToLower(gpu)),
		strings.Replace(gpu, "-c0", "_", 1): unknown(strings.Replace(gpu, "-c0", "_", 1)),
		"MIG-" + gpu:                        unknown("MIG-" + gpu),
		"MIG-" + gpu + "/7":                 unknown("MIG-" + gpu + "/7"),
		"MIG-" + gpu + "/7/":                unknown("MIG-" + gpu + "/7/"),
		"MIG-" + gpu + "/7/0/0":             unknown("MIG-" + gpu + "/7/0/0"),
		"MIG-GPU-a/7/0":                     unknown("MIG-GPU-a/7/0"),
		"nvidia":                            unknown("nvidia"),
		"nvidia0/gi":                        unknown("nvidia0/gi"),
		"nvidia0/vgpu":                      unknown("nvidia0/vgpu"),
		"nvidia0/vgpu1/gi7":                 unknown("nvidia0/vgpu1/gi7"),
		"nvidia0/vgpu1/vgpu2":               unknown("nvidia0/vgpu1/vgpu2"),
	} {
		assert.Equal(t, want, ParseKubelet("nvidia.com/gpu", id), id)
	}
}

func TestParseKubeletOfOtherVendors(t *testing.T) {
	unknown := func(id string) Kubelet { return Kubelet{ID: id, Device: id} }
	local := func(id, local string) Kubelet { return Kubelet{ID: id, Device: id, Local: local} }
	for _, tt := range []struct {
		resource, id string
		want         Kubelet
	}{
		{"amd.com/gpu", "0000:19:00.0", local("0000:19:00.0", "0000:19:00.0")},
		{"amd.com/cpx_nps4", "0003:C1:02.1", local("0003:C1:02.1", "0003:c1:02.1")},
		{"amd.com/gpu", "amdgpu_xcp_3", local("amdgpu_xcp_3", "amdgpu_xcp_3")},
		{"amd.com/gpu", "amdgpu_xcp.12", local("amdgpu_xcp.12", "amdgpu_xcp_12")},
		{"amd.com/gpu", "amdgpu_xcp_", unknown("amdgpu_xcp_")},
		{"amd.com/gpu", "amdgpu_xcp_x", unknown("amdgpu_xcp_x")},
		{"amd.com/gpu", "0000:19:00.0/1", unknown("0000:19:00.0/1")},
		{"amd.com/gpu", gpu, unknown(gpu)},
		{"amd.com/gpu", "", unknown("")},
		{"habana.ai/gaudi", "AM50033534", Kubelet{ID: "GAUDI-AM50033534", Device: "GAUDI-AM50033534", Resolved: true}},
		{"habana.ai/gaudi", "", unknown("")},
		{"habana.ai/gaudi", "a/b", unknown("a/b")},
		{"habana.ai/gaudi", "a::1", unknown("a::1")},
		{"gpu.intel.com/i915", "card0-1", Kubelet{ID: "card0-1", Device: "card0", Shared: true, Local: "card0"}},
		{"gpu.intel.com/xe", "card12-0", Kubelet{ID: "card12-0", Device: "card12", Shared: true, Local: "card12"}},
		{"gpu.intel.com/xe", "card1", unknown("card1")},
		{"gpu.intel.com/xe", "card1-", unknown("card1-")},
		{"gpu.intel.com/xe", "card-1", unknown("card-1")},
		{"gpu.intel.com/xe", "all", unknown("all")},
		{"example.com/gpu", "0000:19:00.0", unknown("0000:19:00.0")},
	} {
		assert.Equal(t, tt.want, ParseKubelet(tt.resource, tt.id), tt.id)
	}
	k := ParseKubelet("gpu.intel.com/xe", "card1-2").WithHwID("PCI-n1@0000:03:00.0")
	assert.Equal(t, Kubelet{ID: "PCI-n1@0000:03:00.0::2", Device: "PCI-n1@0000:03:00.0", Shared: true, Resolved: true}, k)
	k = ParseKubelet("amd.com/gpu", "amdgpu_xcp_3").WithHwID("GPU-f3a2b1/4")
	assert.Equal(t, Kubelet{ID: "GPU-f3a2b1/4", Device: "GPU-f3a2b1/4", Resolved: true}, k)
}

// What is resolved can be joined: Parent, which reads an hw.id, agrees with it.
func FuzzParseKubelet(f *testing.F) {
	for _, seed := range []string{gpu, gpu + "::0", "MIG-" + gpu + "/7/0::2", mig, mig + "::1", "nvidia0/gi7/vgpu1", gpu + "-9", gpu + "-", "all", "::", "", "a/b::9", "\xff"} {
		f.Add(seed)
	}
	resources := [...]string{"nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "gpu.intel.com/xe"}
	f.Fuzz(func(t *testing.T, id string) {
		for _, resource := range resources[1:] {
			k := ParseKubelet(resource, id)
			if k.Shared == (k.ID == k.Device) || !k.Resolved && id != k.ID {
				t.Errorf("%s %q: %+v", resource, id, k)
			}
			if k.Local != "" {
				resolved := k.WithHwID("GPU-1/2")
				if resolved.Shared != (Parent(resolved.ID) == resolved.Device) {
					t.Errorf("%s %q: %+v is resolved as %+v", resource, id, k, resolved)
				}
			}
		}
		k := ParseKubelet(resources[0], id)
		if k.Shared == (k.ID == k.Device) {
			t.Errorf("%q: shared %v, but %q is part of %q", id, k.Shared, k.ID, k.Device)
		}
		if !k.Resolved {
			assert.Equal(t, id, k.ID, "an id that is not resolved is handed on as it is")
			assert.True(t, strings.HasPrefix(id, k.Device) && strings.HasPrefix(id, k.MIG), "%q: %+v", id, k)
			return
		}
		assert.True(t, IsGPU(k.Device) || IsGPU(Parent(k.Device)), "%q: %+v", id, k)
		if k.Shared {
			assert.Equal(t, k.Device, Parent(k.ID))
		}
		// An hw.id of a GPU or its replica is the kubelet's own word.
		if !strings.HasPrefix(id, "MIG-") {
			assert.Equal(t, id, k.ID)
			assert.Equal(t, k, ParseKubelet("nvidia.com/gpu", k.ID))
		}
	})
}
