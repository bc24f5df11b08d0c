// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package migprofile

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNormalForm(t *testing.T) {
	for name, want := range map[string]string{
		"1g.5gb": "1g.5gb", "3G.40GB": "3g.40gb", "1c.3g.20gb": "3g.20gb", "1c.1g.5gb+me": "1g.5gb+me",
		"1g.10gb+me": "1g.10gb+me", "1g.10gb.me": "1g.10gb+me", "1g.10gb,me": "1g.10gb+me", "1g.24gb-me": "1g.24gb-me",
		"2g.48gb-me": "2g.48gb-me", "4g.96gb+gfx": "4g.96gb+gfx", "1g.24gb+me.all": "1g.24gb+me.all", "1g.24gb.me.all": "1g.24gb+me.all",
		"1g.24gb+gfx,me": "1g.24gb+gfx.me", "1g.24gb+gfx+me": "1g.24gb+gfx.me", "1g.24gb.gfx.me": "1g.24gb+gfx.me",
	} {
		p, ok := Parse(name)
		assert.True(t, ok, name)
		assert.Equal(t, want, Normal(name), name)
		assert.Equal(t, want, Normal(want), name)
		again, _ := Parse(want)
		assert.Equal(t, p, again, name)
	}
	p, _ := Parse("2c.4g.96gb.gfx")
	assert.Equal(t, Profile{Compute: 4, MemoryGB: 96, Extensions: "+gfx"}, p)
}

func TestOtherTextsStay(t *testing.T) {
	for _, name := range []string{
		"", "g.gb", "1g", "1g.gb", "0g.5gb", "1g.0gb", "+1g.5gb", "1g.+5gb", "-1g.5gb", "1g.5gbme", "1g.5gb+", "1g.5gb.", "1g.5gb+me.", "1g.5gb++me",
		"1g.5gb+me all", "1g.10gb.2", "3g.40gb+", "1g.5", "3.40gb", "1c.1c.1g.5gb", "1g.99999999999999999999gb", "cpx_nps4", "small",
	} {
		_, ok := Parse(name)
		assert.False(t, ok, name)
		assert.Equal(t, name, Normal(name))
	}
}

func TestResource(t *testing.T) {
	for resource, want := range map[string]string{
		"nvidia.com/mig-1g.10gb": "1g.10gb", "nvidia.com/mig-1g.10gb.me": "1g.10gb+me", "nvidia.com/mig-1g.24gb-me": "1g.24gb-me",
		"nvidia.com/mig-1g.24gb.me.all": "1g.24gb+me.all", "nvidia.com/mig-1g.10gb.shared": "1g.10gb", "nvidia.com/mig-1g.10gb.me.shared": "1g.10gb+me",
		"nvidia.com/mig-small": "", "nvidia.com/gpu": "", "example.com/mig-1g.10gb": "", "": "",
	} {
		assert.Equal(t, want, Resource(resource), resource)
	}
}

func TestCut(t *testing.T) {
	for name, want := range map[string][2]string{
		"NVIDIA H100 80GB HBM3 MIG 1g.10gb":                           {"NVIDIA H100 80GB HBM3", "1g.10gb"},
		"NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb":                        {"NVIDIA A100-SXM4-40GB", "3g.20gb"},
		"NVIDIA H100 80GB HBM3 MIG 1g.10gb+me":                        {"NVIDIA H100 80GB HBM3", "1g.10gb+me"},
		"NVIDIA-H100-80GB-HBM3-MIG-1g.10gb.me":                        {"NVIDIA-H100-80GB-HBM3", "1g.10gb+me"},
		"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition-MIG-1g.24gb-me": {"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "1g.24gb-me"},
		"NVIDIA H100 80GB HBM3":                                       {"NVIDIA H100 80GB HBM3", ""}, "MIG 1g.10gb": {"MIG 1g.10gb", ""}, "X MIG": {"X MIG", ""}, "": {},
		"NVIDIA H100 MIG small": {"NVIDIA H100 MIG small", ""}, "NVIDIA A100-SXM4-40GB-MIG-INVALID": {"NVIDIA A100-SXM4-40GB-MIG-INVALID", ""},
	} {
		model, profile := Cut(name)
		assert.Equal(t, want, [2]string{model, profile}, name)
	}
}
