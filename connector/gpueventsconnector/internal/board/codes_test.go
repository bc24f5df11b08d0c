// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/xid"
)

// aboutMemory are the verdicts about a board with a code that is itself evidence of a memory error.
var aboutMemory = map[int]string{
	63: "degraded remap_pending → reset_gpu", 64: "failed xid_reset remap_pending → reset_gpu",
	94: "degraded ecc_uncorrected → reset_gpu", 95: "failed xid_reset ecc_uncorrected → reset_gpu",
}

// ofBucket is the verdict about a board with a code alone, by the resolution in the
// vendor's catalogue.
func ofBucket(code int, bucket xid.Bucket, severity xid.Severity) string {
	if verdict, known := aboutMemory[code]; known {
		return verdict
	}
	switch bucket {
	case xid.ResetGPU, xid.WorkflowXID48:
		return "failed xid_reset → reset_gpu"
	case xid.RestartNode:
		return "failed xid_restart → reboot_node"
	case xid.RestartVM:
		return "failed xid_restart → restart_vm"
	case xid.WorkflowNVLink, xid.WorkflowNVLink5:
		if slices.Contains([]int{74, 149, 150}, code) {
			return "failed xid_link → read_log"
		}
		return "degraded xid_link → read_log"
	case xid.CheckMechanicals:
		return "degraded xid_mechanics → check_mechanics"
	case xid.UpdateSoftware:
		return "degraded xid_software → update_software"
	case xid.ContactSupport, xid.CheckUVM:
		return "degraded xid_support → contact_support"
	case xid.Undecided:
		if severity == xid.Fatal {
			return "failed xid_reset → reset_gpu"
		}
	}
	return "ok"
}

// Every code means for a board what its resolution asks for.
func TestCodes(t *testing.T) {
	alone := func(code int) string { return newWatch().see(page{"hw.errors/uncorrected": 0}, 0).xid(code).String() }
	buckets := map[int]xid.Bucket{}
	for _, code := range xid.Codes() {
		e, _ := xid.Lookup(code)
		buckets[code] = e.Bucket
		assert.Equal(t, ofBucket(code, e.Bucket, e.Severity), alone(code), code)
	}
	for verdict, codes := range map[string][]int{
		"failed xid_reset → reset_gpu":                 {46, 48, 62, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158},
		"failed xid_restart → reboot_node":             {79},
		"failed xid_restart → restart_vm":              {151},
		"failed xid_link → read_log":                   {74, 149, 150},
		"degraded xid_link → read_log":                 {144, 145, 146, 147, 148},
		"degraded xid_mechanics → check_mechanics":     {54},
		"degraded xid_software → update_software":      {78},
		"degraded xid_support → contact_support":       {159},
		"failed xid_reset ecc_uncorrected → reset_gpu": {95},
		"failed xid_reset remap_pending → reset_gpu":   {64},
		"degraded ecc_uncorrected → reset_gpu":         {94},
		"degraded remap_pending → reset_gpu":           {63},
		"ok":                                           {13, 31, 43, 45, 68, 69, 92, 121, 154, 1024},
	} {
		for _, code := range codes {
			assert.Equal(t, verdict, alone(code), code)
		}
	}

	// The vendor's catalogue, where it is beside the checkout.
	f, err := os.Open("../../../../../shared/data/xid/xid-catalog.csv")
	if os.IsNotExist(err) {
		return
	}
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 173)
	for _, row := range rows[1:] {
		code, err := strconv.Atoi(row[0])
		require.NoError(t, err)
		e, _ := xid.Lookup(code)
		assert.Equal(t, xid.Bucket(row[3]), buckets[code], code)
		assert.Equal(t, ofBucket(code, xid.Bucket(row[3]), e.Severity), alone(code), code)
	}
}

// A sentence for each reason, and for each of its causes.
func TestSentences(t *testing.T) {
	const errors = "hw.errors/uncorrected"
	seen := map[string]bool{}
	for _, tc := range []struct {
		story func(*watch)
		want  string
	}{
		{func(w *watch) { w.see(asks(4), 0) }, "The driver asks for drain_and_reset (recovery action 4)"},
		{func(w *watch) { w.see(asks(0), 0).xid(48).xid(43).see(asks(1), 0) }, "The driver asks for reset_gpu (recovery action 1) after XID 48, 43"},
		{func(w *watch) { w.see(asks(9), 0) }, "The driver asks for recovery action 9, which this version does not know"},
		{func(w *watch) { w.xid(48).xid(45).xid(43).xid(45) }, "XID 48 happened, and with it 45, 43"},
		{func(w *watch) { w.xid(79) }, "XID 79 happened"},
		{func(w *watch) { w.xid(45).xid(74) }, "XID 74 happened, and with it 45"},
		{func(w *watch) { w.xid(54) }, "XID 54 happened"},
		{func(w *watch) { w.xid(78) }, "XID 78 happened"},
		{func(w *watch) { w.xid(159) }, "XID 159 happened"},
		{func(w *watch) { w.see(page{}, 0).fault(31, "a").fault(31, "b").see(page{}, burst) }, "XID 31 happened under 2 owners within 24 hours, the limit is 2"},
		{func(w *watch) { w.see(page{errors: 1}, 0).see(page{errors: 4}, 0) }, "4 memory errors that could not be corrected were counted since the driver was loaded"},
		{func(w *watch) {
			p := page{errors: 0, "gpu.memory.remapped_rows/uncorrected": 0, "gpu.xid.last": 0}
			w.rise(p, errors, 1, 15*time.Second)
		}, "2 memory errors that could not be corrected were counted since the driver was loaded; the driver contained them"},
		{func(w *watch) { w.xid(94) }, "A memory error could not be corrected after XID 94; the driver contained it"},
		{func(w *watch) { w.see(page{"gpu.memory.row_remap.pending": 1}, 0) }, "A faulty row or page of the memory waits for a reset to be replaced"},
		{func(w *watch) { w.see(page{"gpu.memory.row_remap.failure": 1}, 0) }, "A faulty row of the memory could not be replaced"},
		{func(w *watch) { w.see(page{"gpu.memory.remapped_rows/uncorrected": 600}, 0) }, "600 rows were remapped after uncorrectable errors, the limit is 512"},
		{func(w *watch) { w.see(page{"gpu.memory.remap_banks/none": 2}, 0) }, "2 memory banks have no spare row left, the limit is 1"},
		{func(w *watch) { w.see(page{"gpu.memory.sram.threshold_exceeded": 1}, 0) }, "Uncorrectable SRAM errors are above the limit of the vendor"},
		{func(w *watch) { w.see(page{"gpu.memory.retired_pages/uncorrected": 64}, 0) }, "64 memory pages were retired, the limit is 63"},
		{func(w *watch) {
			w.see(page{"gpu.memory.retired_pages/uncorrected": 14}, 0).see(page{"gpu.memory.retired_pages/uncorrected": 17}, 0)
		}, "17 memory pages were retired after uncorrectable errors, some of them within 7 days, the limit is 15"},
		{func(w *watch) { w.rise(page{}, "gpu.nvlink.errors/recovery", 3, 15*time.Second) }, "NVLink had 3 replays and recoveries between two pages, the limit is 1 a minute"},
		{func(w *watch) { w.rise(page{}, "gpu.nvlink.errors/crc_data", 3000, 15*time.Second) }, "NVLink had 200 CRC errors a second, the limit is 100"},
		{func(w *watch) { w.see(page{"gpu.nvlink.peers/up": 7}, 0).see(page{"gpu.nvlink.peers/up": 5}, 0) }, "The GPU reaches 5 other GPUs over NVLink, and reached 7 before"},
		{func(w *watch) { w.see(page{"gpu.fabric.status/unhealthy": 1}, 0) }, "The NVLink fabric of the GPU is unhealthy"},
		{func(w *watch) { w.see(page{"gpu.fabric.status/limited": 1}, 0) }, "The NVLink fabric of the GPU has limited capacity"},
		{func(w *watch) { w.rise(page{}, "gpu.pcie.replays", 10, 6*time.Minute-15*time.Second) }, "The PCIe link repeated 40 transfers within a minute, the limit is 16, in 5 of 10 minutes"},
		{func(w *watch) {
			w.see(page{"gpu.pcie.link.width": 8, "gpu.pcie.link.width.max": 16, "hw.gpu.utilization/general": 1}, 5*time.Minute)
		}, "The PCIe link has 8 lanes under load, and can have 16"},
		{func(w *watch) {
			w.see(page{"gpu.pcie.link.generation": 3, "gpu.pcie.link.generation.max": 5, "hw.gpu.utilization/general": 1}, 5*time.Minute)
		}, "The PCIe link is of generation 3 under load, and can have 5"},
		{func(w *watch) { w.see(page{"gpu.throttle.active/hw_thermal": 1}, 6*time.Minute) }, "The hardware held the clocks down for 60 % of 10 minutes, the limit is 50 %"},
		{func(w *watch) { w.set(Temperature, true) }, "The board is above its critical temperature"},
		{func(w *watch) { w.lose() }, "The board is missing from the pages of its exporter"},
		{func(w *watch) { w.lose().seen(Boot).back().lose() }, "The board is missing from the pages of its exporter again after a reboot"},
		{func(w *watch) { w.see(page{"gpu.health.status/fail": 1}, 15*time.Second) }, "A health watch of DCGM failed on two pages in a row"},
		{func(w *watch) { w.see(page{"gpu.health.status/warn": 1}, 15*time.Second) }, "A health watch of DCGM warned on two pages in a row"},
		{func(w *watch) { w.see(page{"gpu.health.status/fail of thermal": 1}, 15*time.Second) }, "DCGM's health watch of temperature or power failed on two pages in a row"},
		{func(w *watch) { w.other().see(page{"gpu.health.status/fail": 1}, 0) }, "The exporter reports the board as failed"},
		{func(w *watch) { w.other().see(page{"gpu.health.status/fail": 0, "gpu.health.status/warn": 1}, 0) }, "The exporter warns about the board"},
		{func(w *watch) {
			w.other().see(page{"gpu.health.status/fail": 0, "gpu.health.status/fail of thermal": 1}, 0)
		}, "The exporter warns about the board"},
		{func(w *watch) { w.ras(30).ras(25).ras(30) }, "The fatal error AFID 30 happened, and with it 25"},
		{func(w *watch) { w.set(LinkDown, true) }, "A port that had a link to another board has none"},
		{func(w *watch) { w.see(page{"gpu.memory.retired_pages.failure": 1}, 0) }, "A faulty page of the memory could not be replaced"},
		{func(w *watch) { w.recover().recover().recover() }, "The board failed 3 times within 7 days, each time until a reset or a boot, the limit is 3"},
	} {
		w := newWatch()
		tc.story(w)
		v := w.Verdict()
		if assert.Len(t, v.Reasons, 1, tc.want) {
			assert.Equal(t, tc.want, v.Reasons[0].Sentence())
			seen[v.Reasons[0].Reason.Name] = true
		}
	}
	for _, r := range Reasons {
		assert.True(t, seen[r.Name], "%s has no case", r.Name)
	}
}

// Which reasons fit a board, and which of them no page had input for.
func TestCoverage(t *testing.T) {
	const (
		every  = "ecc_uncorrected pcie_replays throttle "
		nvidia = every + "pcie_width recovery_action xid_reset remap_pending dcgm_watch "
		rows   = "remap_failed remap_worn sram_worn "
		links  = "nvlink_errors nvlink_down "
	)
	for model, want := range map[string]string{
		"NVIDIA H100 80GB HBM3":        nvidia + rows + links + "fabric",
		"NVIDIA H100 PCIe":             nvidia + rows + links,
		"NVIDIA A100-SXM4-80GB":        nvidia + rows + links,
		"NVIDIA L40S":                  nvidia + rows,
		"NVIDIA GB200":                 nvidia + rows + links + "fabric",
		"NVIDIA H20-3e":                nvidia + rows + links + "fabric",
		"Tesla V100-SXM2-16GB":         nvidia + "pages_worn " + links,
		"Tesla T4":                     nvidia + "pages_worn",
		"":                             nvidia + rows + links,
		"AMD Instinct MI300X":          every + "exporter_health",
		"Intel(R) Data Center GPU Max": "ecc_uncorrected exporter_health",
		"HL-225":                       "pcie_replays",
	} {
		w := newWatch()
		w.Kind = KindOf("", model)
		v := w.Verdict()
		assert.ElementsMatch(t, strings.Fields(want), v.Missing(), model)
		assert.Equal(t, len(strings.Fields(want)), v.Applicable, model)
		assert.Zero(t, v.WithData, model)
		w.see(page{"gpu.memory.retired_pages/uncorrected": 0, "hw.errors/uncorrected": 0}, 0)
		v = w.Verdict()
		read := []string{"ecc_uncorrected"}
		if w.Kind&NVIDIA != 0 {
			read = append(read, "pages_worn") // what is read fits, where the limits are those of the vendor
		}
		assert.Equal(t, len(read), v.WithData, model)
		for _, name := range read {
			assert.NotContains(t, v.Missing(), name)
		}
		assert.Equal(t, v.Applicable, v.WithData+len(v.Missing()), fmt.Sprint(model))
	}
}

// The id of a board states its vendor, whatever its model is.
func TestKindByID(t *testing.T) {
	for id, want := range map[string]string{
		"GPU-c3ff88426fc31c9e":       "ecc_uncorrected pcie_replays throttle exporter_health",
		"GAUDI-AN12345678":           "pcie_replays",
		"PCI-node-1@0000:4d:00.0":    "ecc_uncorrected exporter_health",
		"GPU-serial-PCB01234567890a": "ecc_uncorrected pcie_replays throttle exporter_health",
	} {
		w := newWatch()
		w.Kind = KindOf(id, "102-G30211-0C")
		v := w.Verdict()
		assert.ElementsMatch(t, strings.Fields(want), v.Missing(), id)
		// Limits of NVIDIA's boards are not those of others.
		w.see(page{"gpu.memory.retired_pages/uncorrected": 200, "gpu.memory.remapped_rows/uncorrected": 600}, time.Minute)
		assert.Equal(t, "unknown", w.String(), id)
	}
}

// What ends a fatal error code depends on what it asks for.
func TestRASEnds(t *testing.T) {
	for _, tc := range []struct {
		code int
		ends Evidence
		want string
	}{
		{30, Reset, "ok"}, {30, Boot, "ok"}, {30, Person, "ok"}, {30, Driver, "failed ras_fatal → reset_gpu"},
		{14, Reset, "failed ras_fatal → reboot_node"}, {14, Boot, "ok"},
		{19, Boot, "failed ras_fatal → rma"}, {19, Person, "ok"},
		{4711, Reset, "ok"},
	} {
		w := newWatch()
		w.see(page{"hw.errors/uncorrected": 0}, 0).ras(tc.code).seen(tc.ends).see(page{"hw.errors/uncorrected": 0}, 0)
		assert.Equal(t, tc.want, w.String(), "%d, %d", tc.code, tc.ends)
	}
}
