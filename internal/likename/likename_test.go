// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package likename

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLikeness(t *testing.T) {
	for _, test := range []struct {
		known, other string
		likely       bool
	}{
		// As DCGM 4.7 renamed its fields.
		{"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO", true},
		{"DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_MEMORY_UTIL_RATIO", true},
		{"DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_SM_CLOCK_HERTZ", true},
		{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", true},
		{"DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_USED_BYTES", true},
		{"DCGM_FI_DEV_FB_TOTAL", "DCGM_FI_DEV_FB_CAPACITY_BYTES", true},
		{"DCGM_FI_DEV_POWER_VIOLATION", "DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL", true},
		{"DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_BOARD_POWER_WATTS", true},
		{"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS", true},
		{"DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR", true},
		{"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", true},
		{"DCGM_FI_DEV_RETIRED_SBE", "DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL", true},
		{"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", true},
		{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", true},
		// As others may.
		{"gpu_gfx_activity", "gpu_gfx_utilization_percent", true},
		{"gpu_package_power", "gpu_package_power_v2", true},
		{"habanalabs_power_mW", "habanalabs_power_watts", true},
		{"hw_gpu_utilization_ratio", "hw_gpu_util_percent", true},
		{"xpum_power_watts", "xpum_board_power_w", true},
		{"num_requests_running", "requests_running", true},

		// Other quantities of the same thing.
		{"DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_MAX_SM_CLOCK", false},
		{"DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_APP_SM_CLOCK", false},
		{"DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_VIDEO_CLOCK", false},
		{"DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX", false},
		{"DCGM_FI_DEV_POWER_MGMT_LIMIT", "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", false},
		{"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_MEMORY_TEMP", false},
		{"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_MAX_OP_TEMP", false},
		{"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_CPU_UTIL_TOTAL", false},
		{"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_ENC_UTIL", false},
		{"DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", false},
		{"DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_TOTAL", false},
		{"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "DCGM_FI_DEV_NVLINK_BANDWIDTH_L0", false},
		{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", false},
		{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", false},
		{"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", false},
		{"habanalabs_power_mW", "habanalabs_power_default_limit_mW", false},
		{"num_requests_running", "num_requests_waiting", false},
		{"", "", false},
		{"DCGM_FI_DEV", "hw_ratio", false},
	} {
		got := Likeness(test.known, test.other)
		assert.Equal(t, test.likely, got >= Likely, "%s and %s: %v", test.known, test.other, got)
		assert.Equal(t, got, Likeness(test.other, test.known), "in the other order: %s and %s", test.known, test.other)
	}
}
