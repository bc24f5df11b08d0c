// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// families are those that each vendor's exporter prints of a device and that have a
// meaning here, or are dropped, by name. The rest is passed on without a name of its own.
var families = map[string]string{
	"amdgpureceiver": `
		gpu_gfx_activity gpu_gfx_busy_instantaneous gpu_vcn_busy_instantaneous gpu_jpeg_busy_instantaneous gpu_vcn_activity
		gpu_jpeg_activity gpu_umc_activity gpu_used_vram gpu_total_vram gpu_total_memory gpu_free_vram gpu_used_visible_vram
		gpu_total_visible_vram gpu_free_visible_vram gpu_package_power gpu_average_package_power gpu_power_usage
		gpu_energy_consumed gpu_junction_temperature gpu_edge_temperature gpu_memory_temperature gpu_hbm_temperature gpu_clock
		gpu_min_clock gpu_max_clock gpu_ecc_correct_total gpu_ecc_uncorrect_total gpu_ecc_deferred_total gpu_afid_errors
		gpu_health pcie_replay_count pcie_recovery_count pcie_replay_rollover_count pcie_nack_sent_count
		pcie_nack_received_count pcie_bandwidth pcie_rx pcie_tx pcie_bidirectional_bandwidth gpu_xgmi_link_rx gpu_xgmi_link_tx
		gpu_violation_processor_hot_residency_percentage gpu_violation_ppt_residency_percentage
		gpu_violation_socket_thermal_residency_percentage gpu_violation_vr_thermal_residency_percentage
		gpu_violation_hbm_thermal_residency_percentage gpu_violation_gfx_clock_below_host_limit_power_percentage
		gpu_violation_gfx_clock_below_host_limit_thermal_percentage gpu_violation_low_utilization_percentage
		gpu_violation_processor_hot_residency_accumulated gpu_violation_ppt_residency_accumulated
		gpu_violation_socket_thermal_residency_accumulated gpu_violation_vr_thermal_residency_accumulated
		gpu_violation_hbm_thermal_residency_accumulated gpu_violation_current_accumulated_counter
		gpu_prof_tensor_active_percent gpu_prof_sm_active gpu_prof_occupancy_percent gpu_prof_simd_utilization
		gpu_process_cu_occupancy gpu_nodes_total`,
	"gaudireceiver": `
		habanalabs_utilization habanalabs_memory_used_bytes habanalabs_memory_total_bytes habanalabs_power_mW
		habanalabs_power_default_limit_mW habanalabs_energy habanalabs_temperature_onchip habanalabs_temperature_onboard
		habanalabs_temperature_threshold_gpu habanalabs_temperature_threshold_memory
		habanalabs_temperature_threshold_slowdown habanalabs_temperature_threshold_shutdown habanalabs_clock_soc_mhz
		habanalabs_clock_soc_max_mhz habanalabs_pcie_replay_count habanalabs_pending_rows_with_single_bit_ecc_errors
		habanalabs_pending_rows_with_double_bit_ecc_errors habanalabs_pending_rows_state habanalabs_nic_port_status
		habanalabs_pcie_receive_throughput habanalabs_pcie_transmit_throughput habanalabs_kube_info
		accelerator_power_usage_watts accelerator_sm_clock_hertz accelerator_memory_clock_hertz`,
	"intelgpureceiver": `
		xpum_engine_ratio xpum_engine_group_ratio xpum_memory_used_bytes xpum_memory_ratio xpum_memory_bandwidth_ratio
		xpum_memory_read_bytes xpum_memory_write_bytes xpum_power_watts xpum_energy_joules xpum_temperature_celsius
		xpum_frequency_mhz xpum_cache_errors xpum_non_compute_errors xpum_programming_errors xpum_driver_errors xpum_resets
		xpum_pcie_read_bytes xpum_pcie_write_bytes xpum_fabric_tx_bytes xpum_xelink_port_status xpum_eu_active_ratio
		hw_gpu_utilization_ratio hw_memory_usage_bytes hw_memory_size_bytes hw_memory_bandwidth_utilization_ratio
		hw_memory_io_bytes_total hw_power_watts hw_energy_joules_total hw_temperature_celsius hw_frequency_hertz
		hw_errors_total hw_gpu_io_bytes_total hw_status hw_frequency_throttle_status`,
}

// blocks of AMD boards that count ECC errors.
const blocks = "umc sdma gfx mmhub athub bif hdp xgmi_wafl df smn sem mp0 mp1 fuse mca vcn jpeg ih mpio"

// TestFamilies: what a vendor's exporter prints is in its receiver's table, of which
// fields.md is written.
func TestFamilies(t *testing.T) {
	for receiver, names := range families {
		text, err := os.ReadFile(filepath.Join("..", "..", "receiver", receiver, "fields.md"))
		require.NoError(t, err)
		all := strings.Fields(names)
		if receiver == "amdgpureceiver" {
			for block := range strings.FieldsSeq(blocks) {
				for _, kind := range []string{"correct", "uncorrect", "deferred"} {
					all = append(all, fmt.Sprintf("gpu_ecc_%s_%s", kind, block))
				}
			}
		}
		for _, family := range all {
			assert.Contains(t, string(text), "`"+family+"`", receiver)
		}
	}
}
