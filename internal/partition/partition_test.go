// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package partition

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCount(t *testing.T) {
	for _, tt := range []struct {
		mode, model string
		want        int
	}{
		{"cpx_nps4", "AMD Instinct MI300X OAM", 8}, {"cpx", "amd instinct mi300a", 6}, {"CPX_NPS1", "MI308X", 4}, {"cpx_nps2", "AMD Instinct MI355X", 8},
		{"cpx_nps4", "", 0}, {"cpx_nps4", "74a1", 0}, {"cpx", "AMD Instinct MI250X", 0},
		{"dpx_nps2", "", 2}, {"tpx_nps1", "", 3}, {"qpx_nps1", "anything", 4}, {"spx_nps1", "", 1},
		{"", "AMD Instinct MI300X", 0}, {"3g.40gb", "AMD Instinct MI300X", 0},
	} {
		assert.Equal(t, tt.want, Count(tt.mode, tt.model), tt)
	}
}

func TestMode(t *testing.T) {
	for resource, want := range map[string]string{
		"amd.com/cpx_nps4": "cpx_nps4", "amd.com/spx_nps1": "spx_nps1", "amd.com/gpu": "", "amd.com/nic": "", "amd.com/vf_nps1": "",
		"nvidia.com/mig-1g.10gb": "", "": "", "amd.com/": "", "amd.com/cpx": "",
	} {
		assert.Equal(t, want, Mode(resource), resource)
	}
}
