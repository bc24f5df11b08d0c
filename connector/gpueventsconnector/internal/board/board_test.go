// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func TestReasons(t *testing.T) {
	const errors, rows, last = "hw.errors/uncorrected", "gpu.memory.remapped_rows/uncorrected", "gpu.xid.last"
	well := func(more ...any) page {
		p := page{errors: 0}
		for i := 0; i < len(more); i += 2 {
			p[more[i].(string)] = float64(more[i+1].(int))
		}
		return p
	}
	const pending = "gpu.memory.row_remap.pending"
	const up, pages = "gpu.nvlink.peers/up", "gpu.memory.retired_pages/uncorrected"
	const replay, recovery = "gpu.nvlink.errors/replay", "gpu.nvlink.errors/recovery"
	const fails, warns, heat = "gpu.health.status/fail", "gpu.health.status/warn", "gpu.health.status/fail of thermal"
	width := func(now, util float64) page {
		return page{errors: 0, "gpu.pcie.link.width": now, "gpu.pcie.link.width.max": 16, "hw.gpu.utilization/general": util}
	}
	paused := func(loaded, idle float64) func(*watch) {
		return func(w *watch) {
			for range 20 {
				w.see(width(loaded, 0.9), 45*time.Second).see(width(idle, 0.1), 0)
			}
		}
	}
	for name, tc := range map[string]struct {
		story func(*watch)
		want  string
	}{
		"nothing was seen":               {func(*watch) {}, "unknown"},
		"a temperature is no health":     {func(w *watch) { w.see(page{"gpu.throttle.active/hw_thermal": 0}, 0) }, "unknown"},
		"well":                           {func(w *watch) { w.see(well(), 0) }, "ok"},
		"recovery action":                {func(w *watch) { w.see(page{"gpu.recovery.action": 4}, 0) }, "failed recovery_action → drain_and_reset"},
		"an unknown recovery action":     {func(w *watch) { w.see(page{"gpu.recovery.action": 9}, 0) }, "degraded recovery_action → read_log"},
		"recovery action done":           {func(w *watch) { w.see(page{"gpu.recovery.action": 1}, 0).see(page{"gpu.recovery.action": 0}, 0) }, "ok"},
		"it replaces the code":           {func(w *watch) { w.xid(119).see(page{"gpu.recovery.action": 0}, 0) }, "ok"},
		"and holds while it is not read": {func(w *watch) { w.see(page{"gpu.recovery.action": 1}, 0).see(well(), time.Hour) }, "failed recovery_action → reset_gpu"},
		"a code that asks for a reset":   {func(w *watch) { w.see(well(), 0).xid(119) }, "failed xid_reset → reset_gpu"},
		"after the reset":                {func(w *watch) { w.see(well(), 0).xid(119).seen(Reset) }, "ok"},
		"energy that fell is a reset": {func(w *watch) {
			w.see(page{errors: 0, "hw.energy": 500}, 0).xid(119).see(page{errors: 0, "hw.energy": 3}, 0)
		}, "ok"},
		"errors that fell are a reset": {func(w *watch) { w.see(page{errors: 2}, 0).xid(119).see(page{errors: 0}, 0) }, "ok"},
		"errors that a person sets to zero are not a reset": {func(w *watch) {
			w.see(page{errors: 2, "hw.energy": 500}, 0).xid(119).see(page{errors: 0, "hw.energy": 510}, 0)
		}, "failed xid_reset → reset_gpu"},
		"errors that fall with the energy are": {func(w *watch) {
			w.see(page{errors: 2, "hw.energy": 500}, 0).xid(119).see(page{errors: 0, "hw.energy": 400}, 0)
		}, "ok"},
		"errors that fall without energy are": {func(w *watch) {
			w.see(page{errors: 2, "hw.energy": 500}, 0).xid(119).see(page{errors: 0}, 0)
		}, "ok"},
		"an acknowledged code":           {func(w *watch) { w.see(well(), 0).xid(119).seen(Person) }, "ok"},
		"a reset does not bring it back": {func(w *watch) { w.see(well(), 0).xid(79).seen(Reset) }, "failed xid_restart → reboot_node"},
		"a boot does":                    {func(w *watch) { w.see(well(), 0).xid(79).seen(Boot) }, "ok"},
		"48 alone":                       {func(w *watch) { w.see(well(), 0).xid(48) }, "failed xid_reset → reset_gpu"},
		"48 with 63":                     {func(w *watch) { w.see(well(), 0).xid(48).xid(63) }, "failed xid_reset remap_pending → drain_and_reset"},
		"63 alone":                       {func(w *watch) { w.see(well(), 0).xid(63) }, "degraded remap_pending → reset_gpu"},
		"63, reset":                      {func(w *watch) { w.see(well(), 0).xid(63).seen(Reset) }, "ok"},
		"63, and the flag":               {func(w *watch) { w.see(well(pending, 0), 0).xid(63) }, "ok"},
		"63, and the flag is set":        {func(w *watch) { w.see(well(pending, 0), 0).xid(63).see(well(pending, 1), 0).seen(Reset) }, "degraded remap_pending → reset_gpu"},
		"63, and a flag later":           {func(w *watch) { w.see(well(), 0).xid(63).see(well(pending, 0), 0) }, "ok"},
		"94, without a count":            {func(w *watch) { w.see(page{last: 0}, 0).xid(94) }, "degraded ecc_uncorrected → reset_gpu"},
		"94, reset":                      {func(w *watch) { w.see(page{last: 0}, 0).xid(94).seen(Reset) }, "ok"},
		"94, and a count":                {func(w *watch) { w.see(well(), 0).xid(94).see(well(), 0) }, "degraded ecc_uncorrected → reset_gpu"},
		"94, after a count":              {func(w *watch) { w.see(well(), 0).see(page{errors: 1}, 0).xid(94) }, "failed ecc_uncorrected → reset_gpu"},
		"95, contained by the count": {func(w *watch) {
			w.see(page{errors: 0, rows: 0, last: 0}, 0).xid(95).see(page{errors: 1, rows: 1, last: 0}, 0)
		}, "failed xid_reset ecc_uncorrected → reset_gpu"},
		"95, and the driver asks for nothing": {func(w *watch) {
			w.see(page{errors: 0, rows: 0, last: 0, "gpu.recovery.action": 0}, 0).xid(95).see(page{errors: 1, rows: 1, last: 0, "gpu.recovery.action": 0}, time.Minute)
		}, "failed ecc_uncorrected → reset_gpu"},
		"of the application":         {func(w *watch) { w.see(well(), 0).xid(31).xid(13).xid(45) }, "ok"},
		"mechanics, quiet for a day": {func(w *watch) { w.see(well(), 0).xid(54).see(well(), 24*time.Hour) }, "ok"},
		"mechanics":                  {func(w *watch) { w.see(well(), 0).xid(54).see(well(), 23*time.Hour) }, "degraded xid_mechanics → check_mechanics"},
		"software, another driver":   {func(w *watch) { w.see(well(), 0).xid(78).seen(Reset).seen(Driver) }, "ok"},
		"uncorrected, alone":         {func(w *watch) { w.see(well(), 0).see(page{errors: 1}, 0) }, "failed ecc_uncorrected → reset_gpu"},
		"uncorrected, contained":     {func(w *watch) { w.see(page{errors: 0, rows: 0, last: 0}, 0).see(page{errors: 1, rows: 1, last: 0}, 0) }, "degraded ecc_uncorrected → reset_gpu"},
		"the first count is no rise": {func(w *watch) { w.see(page{errors: 7}, time.Minute) }, "ok"},
		"a row waits":                {func(w *watch) { w.see(well("gpu.memory.row_remap.pending", 1), 0) }, "degraded remap_pending → reset_gpu"},
		"pages wait": {func(w *watch) {
			w.see(well("gpu.memory.retired_pages.pending", 1, "gpu.memory.row_remap.pending", 0), 0)
		}, "degraded remap_pending → reset_gpu"},
		"a row waits no more": {func(w *watch) {
			w.see(well("gpu.memory.row_remap.pending", 1), 0).see(well("gpu.memory.row_remap.pending", 0), 0)
		}, "ok"},
		"a failed remap":            {func(w *watch) { w.see(well("gpu.memory.row_remap.failure", 1), 0).seen(Boot).seen(Person) }, "failed remap_failed → rma"},
		"many rows":                 {func(w *watch) { w.see(well(rows, 512), 0).seen(Boot) }, "predicted_failure remap_worn → run_diagnostics"},
		"fewer rows":                {func(w *watch) { w.see(well(rows, 511), 0) }, "ok"},
		"a bank without spare rows": {func(w *watch) { w.see(well("gpu.memory.remap_banks/none", 1), 0) }, "predicted_failure remap_worn → run_diagnostics"},
		"worn SRAM":                 {func(w *watch) { w.see(well("gpu.memory.sram.threshold_exceeded", 1), 0) }, "failed sram_worn → rma"},
		"retired pages":             {func(w *watch) { w.see(well("gpu.memory.retired_pages/uncorrected", 63), 0) }, "failed pages_worn → rma"},
		"16 pages at once":          {func(w *watch) { w.see(well("gpu.memory.retired_pages/uncorrected", 16), time.Hour) }, "ok"},
		"pages in one week": {func(w *watch) {
			w.rise(well("gpu.memory.retired_pages/uncorrected", 14), "gpu.memory.retired_pages/uncorrected", 1, 30*time.Second)
		}, "predicted_failure pages_worn → run_diagnostics"},
		"NVLink replays": {func(w *watch) {
			w.see(well("gpu.nvlink.errors/replay", 5), 0).see(well("gpu.nvlink.errors/replay", 6), 0)
		}, "degraded nvlink_errors → reset_gpu"},
		"few CRC errors":                           {func(w *watch) { w.rise(well(), "gpu.nvlink.errors/crc_flit", 1499, time.Minute) }, "ok"},
		"many CRC errors":                          {func(w *watch) { w.rise(well(), "gpu.nvlink.errors/crc_flit", 1500, time.Minute) }, "degraded nvlink_errors → reset_gpu"},
		"few CRC errors, refreshed once a minute":  {func(w *watch) { w.riseSlowly(well(), "gpu.nvlink.errors/crc_flit", 5999) }, "ok"},
		"many CRC errors, refreshed once a minute": {func(w *watch) { w.riseSlowly(well(), "gpu.nvlink.errors/crc_flit", 6000) }, "degraded nvlink_errors → reset_gpu"},
		"NVLink, quiet for 10 minutes": {func(w *watch) {
			w.rise(well(), "gpu.nvlink.errors/replay", 1, time.Minute).see(well("gpu.nvlink.errors/replay", 5), 11*time.Minute)
		}, "ok"},
		"NVLink, quiet for 9 minutes": {func(w *watch) {
			w.rise(well(), "gpu.nvlink.errors/replay", 1, time.Minute).see(well("gpu.nvlink.errors/replay", 5), 9*time.Minute)
		}, "degraded nvlink_errors → reset_gpu"},
		"fabric":                      {func(w *watch) { w.see(well("gpu.fabric.status/unhealthy", 1, "gpu.fabric.status/limited", 0), 0) }, "failed fabric → restart_fabric_manager"},
		"limited fabric":              {func(w *watch) { w.see(well("gpu.fabric.status/unhealthy", 0, "gpu.fabric.status/limited", 1), 0) }, "degraded fabric → restart_fabric_manager"},
		"PCIe replays":                {func(w *watch) { w.rise(well(), "gpu.pcie.replays", 5, 6*time.Minute) }, "degraded pcie_replays → check_mechanics"},
		"PCIe replays of a good link": {func(w *watch) { w.rise(well(), "gpu.pcie.replays", 4, time.Hour) }, "ok"},
		"PCIe replays of a faster link": {func(w *watch) {
			w.rise(well("gpu.pcie.link.width", 16, "gpu.pcie.link.generation", 5), "gpu.pcie.replays", 5, time.Hour)
		}, "ok"},
		"PCIe replays, over": {func(w *watch) {
			w.rise(well(), "gpu.pcie.replays", 5, 6*time.Minute).see(well("gpu.pcie.replays", 130), 12*time.Minute)
		}, "ok"},
		"a narrow link under load":        {func(w *watch) { w.see(width(8, 0.9), 5*time.Minute) }, "degraded pcie_width → check_mechanics"},
		"a narrow link that idles":        {func(w *watch) { w.see(width(8, 0.1), time.Hour) }, "ok"},
		"a narrow link, with pauses":      {paused(8, 8), "degraded pcie_width → check_mechanics"},
		"a link that is narrow in pauses": {paused(16, 8), "ok"},
		"a narrow link, wide again":       {func(w *watch) { w.see(width(8, 0.9), 5*time.Minute).see(width(16, 0.9), 6*time.Minute) }, "ok"},
		"a narrow link, idle since":       {func(w *watch) { w.see(width(8, 0.9), 5*time.Minute).see(width(16, 0.1), time.Hour) }, "degraded pcie_width → check_mechanics"},
		"throttled half of the time":      {func(w *watch) { w.see(well("gpu.throttle.active/hw_thermal", 1), 6*time.Minute) }, "degraded throttle → check_mechanics"},
		"throttled for less": {func(w *watch) {
			w.see(well("gpu.throttle.active/hw_thermal", 1), 4*time.Minute).see(well("gpu.throttle.active/hw_thermal", 0), time.Hour)
		}, "ok"},
		"throttled no more": {func(w *watch) {
			w.see(well("gpu.throttle.active/sw_thermal", 1), 6*time.Minute).see(well("gpu.throttle.active/sw_thermal", 0), 11*time.Minute)
		}, "ok"},
		"too hot":                             {func(w *watch) { w.see(well(), 0).Set("temperature", true, w.at()) }, "degraded temperature → check_mechanics"},
		"lost and back":                       {func(w *watch) { w.see(well(), 0); w.Set("lost", true, w.at()); w.Set("lost", false, w.at()) }, "ok"},
		"three resets in a week":              {func(w *watch) { w.see(well(), 0).xid(119).seen(Reset).xid(119).seen(Reset).xid(119).seen(Reset) }, "predicted_failure recurring → contact_support"},
		"the driver decides on its next page": {func(w *watch) { w.see(asks(0), 0).xidNow(119).see(asks(0), 0) }, "ok"},
		"and none decides nothing before":     {func(w *watch) { w.see(asks(0), 0).xidNow(119) }, "ok"},
		"it asks for something on that page":  {func(w *watch) { w.see(asks(0), 0).xidNow(119).see(asks(2), 0) }, "failed recovery_action → reboot_node"},
		"and after a code that stood":         {func(w *watch) { w.see(well(), 0).xid(119).see(asks(1), 0) }, "failed recovery_action → reset_gpu"},
		"it is not read any more":             {func(w *watch) { w.see(asks(0), 0).xidNow(79).see(well(), 0) }, "failed xid_restart → reboot_node"},
		"other codes stand beside it":         {func(w *watch) { w.see(asks(0), 0).xidNow(54).see(asks(0), time.Minute) }, "degraded xid_mechanics → check_mechanics"},
		"three recoveries in a week":          {func(w *watch) { w.recover().recover().recover() }, "predicted_failure recurring → contact_support"},
		"three recoveries without a reset": {func(w *watch) {
			w.see(asks(1), 0).see(asks(0), 0).see(asks(1), 0).see(asks(0), 0).see(asks(1), 0).see(asks(0), 0)
		}, "ok"},
		"recurring, acknowledged, and again":    {func(w *watch) { w.recover().recover().recover().seen(Person).recover() }, "ok"},
		"recurring, quiet for a week":           {func(w *watch) { w.recover().recover().recover(); w.now = w.now.Add(week); w.see(asks(0), 0) }, "ok"},
		"63 before 48":                          {func(w *watch) { w.see(well(), 0).xid(63).xid(48) }, "failed xid_reset remap_pending → drain_and_reset"},
		"63 long before 48":                     {func(w *watch) { w.see(well(), 0).xid(63); w.now = w.now.Add(burst); w.xid(48) }, "failed xid_reset remap_pending → reset_gpu"},
		"48 and 63 with many codes between":     {func(w *watch) { w.see(well(), 0).xids(48, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 63) }, "failed xid_reset remap_pending → drain_and_reset"},
		"an unknown code":                       {func(w *watch) { w.see(well(), 0).xids(1024, 1<<40, -3) }, "ok"},
		"a path over NVLink is lost":            {func(w *watch) { w.see(well(up, 7), 0).see(well(up, 6), 0) }, "failed nvlink_down → restart_fabric_manager"},
		"and is back":                           {func(w *watch) { w.see(well(up, 7), 0).see(well(up, 6), 0).see(well(up, 7), 0) }, "ok"},
		"it was never there":                    {func(w *watch) { w.see(well(up, 0), time.Hour) }, "ok"},
		"it is not there since a reset":         {func(w *watch) { w.see(well(up, 7), 0).seen(Reset).see(well(up, 0), 0) }, "ok"},
		"a reset does not bring it back either": {func(w *watch) { w.see(well(up, 7), 0).see(well(up, 6), 0).seen(Reset).see(well(up, 6), 0) }, "failed nvlink_down → restart_fabric_manager"},
		"a lost path that is acknowledged":      {func(w *watch) { w.see(well(up, 7), 0).see(well(up, 6), 0).seen(Person).see(well(up, 6), 0) }, "ok"},
		"acknowledged while it lasts": {func(w *watch) {
			w.see(well(up, 7), 0).see(well(up, 6), 0)
			at := w.at()
			w.see(well(up, 6), time.Minute).Seen(Person, at)
			w.see(well(up, 6), 0)
		}, "ok"},
		"another one after an old acknowledgement": {func(w *watch) {
			w.see(well(up, 7), 0).see(well(up, 6), 0)
			at := w.at()
			for _, n := range []int{6, 6, 5} { // the annotation stays
				w.Seen(Person, at)
				w.see(well(up, n), 0)
			}
			w.Seen(Person, at)
		}, "failed nvlink_down → restart_fabric_manager"},
		"a watch fails once":                      {func(w *watch) { w.see(well(fails, 1, warns, 0), 0) }, "ok"},
		"a watch fails twice":                     {func(w *watch) { w.see(well(fails, 1, warns, 0), 15*time.Second) }, "failed dcgm_watch → run_diagnostics"},
		"a watch warns twice":                     {func(w *watch) { w.see(well(fails, 0, warns, 1), 15*time.Second) }, "degraded dcgm_watch → run_diagnostics"},
		"a watch warns and fails in turn":         {func(w *watch) { w.see(well(fails, 0, warns, 1), 0).see(well(fails, 1, warns, 0), 0) }, "degraded dcgm_watch → run_diagnostics"},
		"the watch of heat fails twice":           {func(w *watch) { w.see(well(fails, 0, heat, 1), 15*time.Second) }, "degraded dcgm_watch → run_diagnostics"},
		"one watch after the other fails":         {func(w *watch) { w.see(well(fails, 1), 0).see(well(fails, 2), 0).see(well(fails, 1), 0) }, "ok"},
		"one watch warns, then another fails":     {func(w *watch) { w.see(well(fails, 0, warns, 1), 0).see(well(fails, 2, warns, 0), 0) }, "ok"},
		"a second watch fails, the first goes on": {func(w *watch) { w.see(well(fails, 1), 0).see(well(fails, 3), 0) }, "failed dcgm_watch → run_diagnostics"},
		"a watch passes":                          {func(w *watch) { w.see(well(fails, 1), time.Minute).see(well(fails, 0, warns, 0), 0) }, "ok"},
		"a watch passes and fails in turn":        {func(w *watch) { w.see(well(fails, 1), 0).see(well(fails, 0), 0).see(well(fails, 1), 0) }, "ok"},
		"the application's code, twice":           {func(w *watch) { w.see(well(), 0).fault(31, "a").fault(31, "a").see(well(), burst) }, "ok"},
		"under two owners":                        {func(w *watch) { w.see(well(), 0).fault(31, "a").fault(31, "b").see(well(), burst) }, "degraded xid_repeated → run_diagnostics"},
		"under two owners, just now":              {func(w *watch) { w.see(well(), 0).fault(31, "a").fault(31, "b").see(well(), 0) }, "ok"},
		"of two codes":                            {func(w *watch) { w.see(well(), 0).fault(31, "a").fault(13, "b").see(well(), burst) }, "ok"},
		"under an unknown owner":                  {func(w *watch) { w.see(well(), 0).fault(31, "a").fault(31, "").see(well(), burst) }, "ok"},
		"that other boards had too": {func(w *watch) {
			w.see(well(), 0).fault(31, "a").fault(31, "b").Spread(31, "b", w.at())
			w.see(well(), burst)
		}, "ok"},
		"in two days": {func(w *watch) {
			w.see(well(), 0).fault(31, "a")
			w.now = w.now.Add(day)
			w.fault(31, "b").see(well(), burst)
		}, "ok"},
		"repeated, quiet for a day": {func(w *watch) { w.see(well(), 0).fault(31, "a").fault(31, "b").see(well(), day) }, "ok"},
		"repeated, acknowledged": {func(w *watch) {
			w.see(well(), 0).fault(31, "a").fault(31, "b").see(well(), burst).seen(Person).see(well(), 0)
		}, "ok"},
		"lost again after a boot":           {func(w *watch) { w.see(well(), 0).lose().seen(Boot).back().lose() }, "failed lost → check_mechanics"},
		"lost again without a boot":         {func(w *watch) { w.see(well(), 0).lose().back().lose() }, "failed lost → reboot_node"},
		"lost again much later":             {func(w *watch) { w.see(well(), 0).lose().seen(Boot).back(); w.now = w.now.Add(week); w.lose() }, "failed lost → reboot_node"},
		"two pages at once, above 15":       {func(w *watch) { w.see(well(pages, 14), 0).see(well(pages, 16), 0) }, "predicted_failure pages_worn → run_diagnostics"},
		"one page above 15":                 {func(w *watch) { w.see(well(pages, 15), 0).see(well(pages, 16), 0) }, "ok"},
		"corrected pages alone":             {func(w *watch) { w.see(page{errors: 0, "gpu.memory.retired_pages/corrected": 63}, 0) }, "failed pages_worn → rma"},
		"NVLink errors for the third time":  {func(w *watch) { w.flap(3) }, "degraded nvlink_errors → check_mechanics"},
		"NVLink errors for the second time": {func(w *watch) { w.flap(2) }, "degraded nvlink_errors → reset_gpu"},
		"a count of links that is away a page": {func(w *watch) {
			w.see(well(replay, 5, recovery, 3), 0).see(well(replay, 5), 0).see(well(replay, 5, recovery, 3), 0)
		}, "ok"},
		"a narrow link, a page a minute": {func(w *watch) { w.every = time.Minute; w.see(width(8, 0.9), 6*time.Minute) }, "degraded pcie_width → check_mechanics"},
		"the clock is set back": {func(w *watch) {
			w.see(well(), 0).xid(54)
			w.now = w.now.Add(-240 * time.Hour)
			w.see(well(), day+time.Minute)
		}, "ok"},
		"repeated, and the clock is set back": {func(w *watch) {
			w.see(well(), 0).fault(31, "a").fault(31, "b")
			w.now = w.now.Add(-240 * time.Hour)
			w.see(well(), day+10*time.Minute)
		}, "ok"},
		"recurring, and the clock is set back": {func(w *watch) {
			w.recover().recover()
			w.now = w.now.Add(-240 * time.Hour)
			w.see(asks(0), 0)
			w.now = w.now.Add(week)
			w.recover()
		}, "ok"},
		"the heaviest action": {func(w *watch) { w.see(well("gpu.memory.row_remap.pending", 1), 0).xid(79) }, "failed xid_restart remap_pending → reboot_node"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatch()
			tc.story(w)
			assert.Equal(t, tc.want, w.String())
		})
	}
}

// A score is from 0 to 1; one more reason never raises it; 1 is ok and 0 failed; state and
// score order boards alike.
func TestScore(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var verdicts []Verdict
	for range 2000 {
		w := newWatch().see(page{"hw.errors/uncorrected": 0}, 0)
		before := w.Verdict()
		require.Equal(t, 1., before.Score)
		for range r.IntN(6) {
			w.active.raise(r.IntN(len(Reasons)), w.at(), Finding{})
			v := w.Verdict()
			require.LessOrEqual(t, v.Score, before.Score)
			require.GreaterOrEqual(t, v.State, before.State)
			require.GreaterOrEqual(t, v.Score, 0.)
			require.Equal(t, v.State == health.OK, v.Score == 1)
			require.Equal(t, v.State == health.Failed, v.Score == 0)
			before = v
		}
		verdicts = append(verdicts, before)
	}
	for i := 1; i < len(verdicts); i++ {
		if a, b := verdicts[i-1], verdicts[i]; a.State < b.State {
			require.Greater(t, a.Score, b.Score)
		}
	}
}

func TestReasonsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Reasons {
		assert.NotEqual(t, health.OK, r.State, r.Name)
		assert.NotEqual(t, health.None, r.Action, r.Name)
		assert.False(t, seen[r.Name])
		seen[r.Name] = true
		if r.State == health.Degraded {
			assert.GreaterOrEqual(t, r.Weight, 0.5, r.Name)
			assert.LessOrEqual(t, r.Weight, 0.9, r.Name)
		}
		assert.True(t, r.Judge == nil || len(r.Reads) > 0, r.Name)
		for _, text := range []string{r.Doc.Raised, r.Doc.Cleared, r.Doc.Source} {
			assert.NotEmpty(t, text, r.Name)
			assert.False(t, strings.HasSuffix(text, "."), r.Name)
		}
		assert.True(t, strings.HasSuffix(r.Doc.Means, "."), r.Name)
	}
	assert.LessOrEqual(t, len(Reasons), 64, fmt.Sprint("bits of fresh; ", names.HwID))
}
