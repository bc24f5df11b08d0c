// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package rename

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPage(t *testing.T) {
	const page = `# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",DCGM_FI_DRIVER_VERSION="580"} 41
gpu_gfx_activity 5
# a comment
process_cpu_seconds_total 3
go_info{version="hw_"} 1`
	const renamed = `# HELP DCGM_FI_DEV_GPU_UTIL_V2 GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL_V2 gauge
DCGM_FI_DEV_GPU_UTIL_V2{gpu="0",DCGM_FI_DRIVER_VERSION="580"} 41
gpu_gfx_activity_v2 5
# a comment
process_cpu_seconds_total 3
go_info{version="hw_"} 1`
	assert.Equal(t, renamed, string(Page([]byte(page))))
	assert.Empty(t, Page(nil))
}
