// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// healthAt is the health of a board, in a line.
func healthAt(t *testing.T, fl *Fleet, board int, at time.Duration) string {
	t.Helper()
	_, boards, err := fl.HealthOf("n", fl.Start().Add(at))
	require.NoError(t, err)
	h := boards[board].Health
	return strings.TrimSpace(h.State + " " + strings.Join(h.Reasons, " ") + " " + strings.TrimPrefix(h.Action, "none"))
}

func all(model string) Node {
	return Node{
		Version: "4.6", Model: model, Devices: 2, Fields: "all", PodLabels: true,
		With: []string{recoveryField, watchField, pathField},
		Pods: []Pod{{Namespace: "a", Name: "p", Devices: []string{"1"}, Load: Training}},
	}
}

// What is wrong with a board is on its page, and in its health, until it is over.
func TestHarm(t *testing.T) {
	const m = Duration(time.Minute)
	for name, tc := range map[string]struct {
		model  string
		faults []Fault // of device 1, from the first minute on
		field  string
		value  float64 // of it a second after the start of the last fault
		health string  // likewise after wait
		wait   time.Duration
		end    time.Duration // when it is well again
		stays  string        // or what it is then
	}{
		"row to remap":      {"H100", []Fault{{Kind: RowRemapPending, For: m}}, "DCGM_FI_DEV_ROW_REMAP_PENDING", 1, "degraded remap_pending reset_gpu", 0, m2, ""},
		"page to retire":    {"T4", []Fault{{Kind: RowRemapPending, For: m}}, "DCGM_FI_DEV_RETIRED_PENDING", 1, "degraded remap_pending reset_gpu", 0, m2, ""},
		"row not remapped":  {"H100", []Fault{{Kind: RowRemapFailure, For: m}}, "DCGM_FI_DEV_ROW_REMAP_FAILURE", 1, "failed remap_failed rma", 0, m2, ""},
		"rows":              {"H100", []Fault{{Kind: RemapWorn, Count: 512, For: m}}, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 512, "predicted_failure remap_worn run_diagnostics", 0, m2, "predicted_failure remap_worn run_diagnostics"},
		"bank":              {"H100", []Fault{{Kind: RemapWorn}}, "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE", 1, "predicted_failure remap_worn run_diagnostics", 0, m2, "predicted_failure remap_worn run_diagnostics"},
		"SRAM":              {"H100", []Fault{{Kind: SRAMExceeded, For: m}}, "DCGM_FI_DEV_THRESHOLD_SRM", 1, "failed sram_worn rma", 0, m2, ""},
		"pages":             {"T4", []Fault{{Kind: RetiredPages, Count: 63}}, "DCGM_FI_DEV_RETIRED_DBE", 63, "failed pages_worn rma", 0, m2, "failed pages_worn rma"},
		"some pages":        {"T4", []Fault{{Kind: RetiredPages, Count: 16}}, "DCGM_FI_DEV_RETIRED_DBE", 16, "predicted_failure pages_worn run_diagnostics", 0, m2, "predicted_failure pages_worn run_diagnostics"},
		"uncorrected":       {"H100", []Fault{{Kind: XID, Code: 94}, {Kind: ECC}}, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 2, "degraded ecc_uncorrected reset_gpu", 0, m2, "degraded ecc_uncorrected reset_gpu"},
		"without a code":    {"H100", []Fault{{Kind: ECC, Count: 2}}, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 2, "failed ecc_uncorrected reset_gpu", 0, m2, "failed ecc_uncorrected reset_gpu"},
		"without remapping": {"T4", []Fault{{Kind: ECC}}, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 1, "failed ecc_uncorrected reset_gpu", 0, m2, "failed ecc_uncorrected reset_gpu"},
		"a rate":            {"H100", []Fault{{Kind: ECC, Rate: 60, For: m}}, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 1, "failed ecc_uncorrected reset_gpu", time.Second, m2, "failed ecc_uncorrected reset_gpu"},
		"lifetime":          {"H100", []Fault{{Kind: ECC, Lifetime: true}}, "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", 1, "ok", 0, m2, ""},
		"corrected":         {"H100", []Fault{{Kind: ECC, Corrected: true, Count: 1e6}}, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", 1e6, "ok", 0, m2, ""},
		"reset":             {"H100", []Fault{{Kind: ECC}, {Kind: GPUReset}}, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 0, "ok", 0, m2, ""},
		"replays of a link": {"H100", []Fault{{Kind: NVLinkErrors}}, "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", 1, "degraded nvlink_errors reset_gpu", 0, 12 * time.Minute, ""},
		"few CRC errors":    {"H100", []Fault{{Kind: NVLinkErrors, Mode: "crc_data", Count: 99}}, "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", 99, "ok", 0, m2, ""},
		"no path":           {"H100", []Fault{{Kind: NVLinkDown, Index: 0, For: m}}, pathField, 6, "failed nvlink_down restart_fabric_manager", 0, m2, ""},
		"replays":           {"H100", []Fault{{Kind: PCIeReplays, Rate: 60, For: 8 * m}}, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 1, "degraded pcie_replays check_mechanics", 7 * time.Minute, 25 * time.Minute, ""},
		"few replays":       {"H100", []Fault{{Kind: PCIeReplays, Rate: 30, For: 8 * m}}, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 0, "ok", 8 * time.Minute, 25 * time.Minute, ""},
		"lanes":             {"H100", []Fault{{Kind: PCIeWidth, For: 30 * m}}, "DCGM_FI_DEV_PCIE_LINK_WIDTH", 8, "degraded pcie_width check_mechanics", 20 * time.Minute, 55 * time.Minute, ""},
		"generation":        {"H100", []Fault{{Kind: PCIeWidth, Generation: 3, For: m}}, "DCGM_FI_DEV_PCIE_LINK_GEN", 3, "ok", 0, m2, ""},
		"slow":              {"H100", []Fault{{Kind: SlowDevice, Percent: 100, For: m}}, "DCGM_FI_DEV_SM_CLOCK", 0, "ok", 0, m2, ""},
		"brake":             {"H100", []Fault{{Kind: Throttle, Mode: "hw_power_brake", For: 8 * m}}, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 128, "degraded throttle check_mechanics", 7 * time.Minute, 25 * time.Minute, ""},
		"power cap":         {"H100", []Fault{{Kind: Throttle, Mode: "sw_power", For: 8 * m}}, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 4, "ok", 7 * time.Minute, 25 * time.Minute, ""},
		"recovery":          {"H100", []Fault{{Kind: RecoveryAction, Code: 4, For: m}}, recoveryField, 4, "failed recovery_action drain_and_reset", 0, m2, ""},
		"recovered":         {"H100", []Fault{{Kind: RecoveryAction, Code: 1}, {Kind: GPUReset}}, recoveryField, 0, "ok", 0, m2, ""},
		"fabric":            {"H100", []Fault{{Kind: Fabric, Mode: "limited", For: m}}, "DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY", 3, "degraded fabric restart_fabric_manager", 0, m2, ""},
		"watch":             {"H100", []Fault{{Kind: DCGMWatch, For: m}}, watchField + "PCIE", 20, "failed dcgm_watch run_diagnostics", 30 * time.Second, m2, ""},
		"XID":               {"H100", []Fault{{Kind: XID, Code: 79}, {Kind: Reboot}}, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 0, "ok", 0, m2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := oneNode(all(tc.model))
			last := time.Minute
			for i, f := range tc.faults {
				f.Node, f.Device, f.After = "n", "1", m+Duration(i)*Duration(10*time.Second)
				if f.Kind == Reboot {
					f.Device = ""
				}
				last = time.Duration(f.After)
				cfg.Faults = append(cfg.Faults, f)
			}
			fl, _ := newFleet(t, cfg)
			assert.Equal(t, "ok", healthAt(t, fl, 1, last-11*time.Second))
			assert.Equal(t, tc.health, healthAt(t, fl, 1, last+tc.wait+time.Second))
			want := tc.stays
			if want == "" {
				want = "ok"
			}
			assert.Equal(t, want, healthAt(t, fl, 1, last+tc.end))
			assert.Equal(t, tc.health, healthAt(t, fl, 1, last+tc.wait+time.Second), "asked again for an earlier time")
			found := false
			for _, s := range page(t, fl, "n", last+time.Second).Samples {
				if s.Labels["gpu"] == "1" && s.Name+s.Labels["health_watch"] == tc.field {
					found = true
					assert.Equal(t, tc.value, s.Value)
				}
			}
			assert.True(t, found, "the field is on the page")
		})
	}
}

const m2 = 2 * time.Minute
