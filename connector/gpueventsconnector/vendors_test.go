// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const amdA, gaudiA, intelA = "GPU-c3ff88426fc31c9e", "GAUDI-AN12345678", "PCI-n1@0000:4d:00.0"

// step is what a board has on two pages, one after the other.
type step struct {
	narrate string
	again   bool // after a restart
	lasts   time.Duration
	points  []reading
}

// Each event about boards of other vendors is raised and cleared once for each fault, also
// across a restart, and says nothing about what was there before the first page.
func TestVendorEvents(t *testing.T) {
	code := func(pairs ...any) (all []reading) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, reading{&names.GPURASLast, float64(pairs[i].(int)), []string{names.GPURASSeverity, pairs[i+1].(string)}})
		}
		return all
	}
	const fatal, uncorrected, corrected = "fatal", "non_fatal_uncorrected", "non_fatal_corrected"
	ports := func(up ...float64) (all []reading) {
		for i, v := range up {
			all = append(all, reading{&names.GPULinkUp, v, []string{names.GPULinkIndex, string(rune('0' + i)), names.GPULinkKind, "internal"}})
		}
		return append(all, reading{&names.GPULinkUp, 0, []string{names.GPULinkIndex, "22", names.GPULinkKind, "external"}})
	}
	repair := func(pages, pending, failed float64) []reading {
		return []reading{{&names.GPURetiredPages, pages, nil}, {&names.GPURetiredPending, pending, nil}, {&names.GPURetiredFailure, failed, nil}}
	}
	rows := func(corrected, uncorrected, pending float64) []reading {
		return []reading{
			{&names.GPURemappedRows, corrected, []string{names.ErrorType, "corrected"}},
			{&names.GPURemappedRows, uncorrected, []string{names.ErrorType, "uncorrected"}},
			{&names.GPURemappedRowsPending, pending, nil},
		}
	}
	resets := func(n float64) []reading { return []reading{{&names.GPUDeviceResets, n, nil}} }
	watch := func(state string) (all []reading) {
		for _, s := range []string{"pass", "warn", "fail"} {
			v := 0.
			if s == state {
				v = 1
			}
			all = append(all, reading{&names.GPUHealthStatus, v, []string{names.GPUHealthWatch, "exporter", names.GPUHealthState, s}})
		}
		return append(all, reading{&names.HwErrors, 0, []string{names.ErrorType, "uncorrected"}})
	}
	heat := func(v float64) []reading {
		return []reading{{&names.HwTemperature, v, []string{names.HwSensorLocation, names.SensorGPU}}}
	}
	throttled := func(reason string, v float64) []reading {
		return []reading{{&names.GPUThrottleActive, v, []string{names.GPUThrottleReason, reason}}}
	}
	energy := func(joules float64, more []reading) []reading {
		return append(more, reading{&names.HwEnergy, joules, nil}, reading{&names.HwErrors, 0, []string{names.ErrorType, "uncorrected"}})
	}
	for name, tc := range map[string]struct {
		id     string
		health bool
		steps  []step
	}{
		"amd_ras": {amdA, false, []step{
			{"25 is there from the start", false, 0, code(25, fatal)},
			{"30 is new", false, 0, code(30, fatal)},
			{"no record is on the page", false, 0, nil},
			{"30 is not new", false, 0, code(30, fatal)},
			{"a restart", true, 0, code(30, fatal)},
			{"14 is new after a restart, and 24 was corrected", true, 0, code(14, fatal, 24, corrected)},
			{"two at one time; 22 is not fatal, 4711 is not known", false, 0, code(14, fatal, 4711, fatal, 22, uncorrected)},
			{"0 is no error", false, 0, code(0, fatal, 0, uncorrected)},
			{"no severity that there is", false, 0, code(30, "informational")},
			{"30 again, six minutes later", false, 6 * time.Minute, code(30, fatal)},
		}},
		"amd_bad_pages": {amdA, false, []step{
			{"3 pages were retired before", false, 0, repair(3, 0, 0)},
			{"one more", false, 0, repair(4, 0, 0)},
			{"no other one for five minutes", false, 5 * time.Minute, repair(4, 0, 0)},
			{"one waits", false, 0, repair(4, 1, 0)},
			{"a restart", true, 0, repair(4, 1, 0)},
			{"it is retired after another restart", true, 0, repair(5, 0, 0)},
			{"one cannot be", false, 0, repair(5, 0, 1)},
			{"nothing is read", false, 0, nil},
			{"a clean board", false, 6 * time.Minute, repair(5, 0, 0)},
		}},
		"gaudi_rows": {gaudiA, false, []step{
			{"2 rows were replaced before", false, 0, rows(1, 1, 0)},
			{"one waits", false, 0, rows(1, 1, 1)},
			{"it is replaced", false, 0, rows(2, 1, 0)},
			{"nothing more", false, 6 * time.Minute, rows(2, 1, 0)},
		}},
		"gaudi_links": {gaudiA, false, []step{
			{"port 2 never had a link", false, 0, ports(1, 1, 0)},
			{"port 1 loses it for 30 s", false, 0, ports(1, 0, 0)},
			{"and has it again", false, 0, ports(1, 1, 0)},
			{"port 0 loses it for two minutes", false, 2 * time.Minute, ports(0, 1, 0)},
			{"a restart", true, 2 * time.Minute, ports(0, 1, 0)},
			{"no port is on the page", false, 0, nil},
			{"it is up", false, 0, ports(1, 1, 0)},
			{"both are down after a restart", true, 2 * time.Minute, ports(0, 0, 0)},
			{"both are up", false, 0, ports(1, 1, 0)},
		}},
		"intel_reset": {intelA, false, []step{
			{"it was reset before", false, 0, resets(2)},
			{"and once more", false, 0, resets(3)},
			{"and while nothing watched", true, 6 * time.Minute, resets(5)},
			{"the driver was loaded", false, 0, resets(0)},
		}},
		"amd_heat": {amdA, false, []step{
			{"94 is hot for others", false, 6 * time.Minute, heat(94)},
			{"97", false, 6 * time.Minute, heat(97)},
			{"101", false, 3 * time.Minute, heat(101)},
			{"91", false, 0, heat(91)},
		}},
		"amd_throttle": {amdA, false, []step{
			{"low_util and power_cap are none", false, 3 * time.Minute, append(throttled("power_cap", 1), throttled("low_util", 1)...)},
			{"prochot", false, 3 * time.Minute, throttled("prochot", 1)},
			{"cold", false, 3 * time.Minute, throttled("prochot", 0)},
		}},
		"exporter_health": {amdA, true, []step{
			{"pass", false, 0, watch("pass")},
			{"fail", false, 0, watch("fail")},
			{"a restart", true, 0, watch("fail")},
			{"warn", false, 0, watch("warn")},
			{"pass", false, 0, watch("pass")},
		}},
		"amd_health": {amdA, true, []step{
			{"well", false, 0, energy(5000, code(30, fatal))},
			{"a fatal error", false, 0, energy(6000, code(27, fatal))},
			{"a restart", true, 0, energy(7000, code(27, fatal))},
			{"nothing is read for a moment", false, 0, nil},
			{"it was reset", false, 0, energy(100, code(27, fatal))},
			{"the board has to be replaced", false, 0, energy(200, code(19, fatal))},
			{"a reset does not help", false, 0, energy(10, code(19, fatal))},
			{"nor a page that could not be retired", false, 0, energy(20, repair(1, 0, 1))},
		}},
		"gaudi_health": {gaudiA, true, []step{
			{"nothing decides that it is well", false, 0, ports(1)},
			{"a link is lost", false, 2 * time.Minute, ports(0)},
			{"and is back, and a row waits", false, 0, append(ports(1), rows(0, 0, 1)...)},
			{"it is replaced", false, 0, rows(0, 1, 0)},
		}},
		"intel_health": {intelA, true, []step{
			{"well", false, 0, append(watch("pass"), resets(0)...)},
			{"an error", false, 0, append([]reading{{&names.HwErrors, 1, []string{names.ErrorType, "uncorrected"}}}, resets(0)...)},
			{"a reset ends it", false, 0, append([]reading{{&names.HwErrors, 1, []string{names.ErrorType, "uncorrected"}}}, resets(1)...)},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set := []func(*Config){deviceSet}
				if tc.health {
					set = append(set, withHealth)
				}
				d := newDisk()
				s := newStory(d.boot(t, set...))
				for _, step := range tc.steps {
					s.narrate("%s", step.narrate)
					if step.again {
						s.stop()
						s.bench = d.boot(t, set...)
					}
					s.every(interval, 2+int(step.lasts/interval), one(gpu{id: tc.id, pod: "chat-0", index: 5, points: step.points}))
				}
				s.stop()
				s.golden("vendors/" + name)
			})
		})
	}
}

// No change of the partitions of a board is a lost device, nor are partitions that an
// exporter leaves out, the one with the board's own rows among them.
func TestPartitionsComeAndGo(t *testing.T) {
	parts := func(profile string, numbers ...string) (all []gpu) {
		for _, n := range numbers {
			if n == "board" {
				all = append(all, gpu{id: amdA, index: 1})
				continue
			}
			all = append(all, gpu{id: amdA + "/" + n, parent: amdA, index: int64(n[0]), points: []reading{
				{&names.GPUMemoryUsage, 1, []string{names.GPUPartitionProfile, profile}},
			}})
		}
		return all
	}
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet)
		for _, gpus := range [][]gpu{
			parts("spx_nps1", "board"),
			parts("cpx_nps4", "board", "0", "1", "2", "3", "4", "5", "6", "7"),
			parts("cpx_nps4", "board", "0", "1", "2", "4", "5", "6", "7"), // 3 is missing
			parts("cpx_nps4", "1", "2", "3"),                              // and so is the one with the board's rows
			parts("dpx_nps2", "board", "0", "1"),
			parts("spx_nps1", "board"),
		} {
			for range 10 {
				require.Empty(t, b.feed(scrape(page{at: time.Now(), node: "n1", gpus: gpus})))
				require.Empty(t, b.wait(interval))
			}
		}
		// What was raised about a partition ends with it.
		full := parts("dpx_nps2", "board", "0", "1")
		full[1].values = map[*names.Metric]float64{&names.GPUMemoryUtilization: 0.99}
		full[1].pod = "chat-0"
		var got []occurred
		feed := func(n int, gpus []gpu) {
			for range n {
				got = append(got, b.feed(scrape(page{at: time.Now(), node: "n1", gpus: gpus}))...)
				got = append(got, b.wait(interval)...)
			}
		}
		feed(8, full)
		feed(8, parts("spx_nps1", "board"))
		require.Equal(t, []string{"gpu.memory.pressure raised critical", "gpu.memory.pressure cleared"}, brief(got))
		require.Equal(t, "partition 0 of "+amdA+" on n1: 99.0 % of its memory is in use, above 98 % (critical). It was owned by pod chat-0 of service chat in namespace ml when this was raised.", got[0].body)
		require.Equal(t, "partition 0 of "+amdA+" on n1 is no part of its board any more, and what was raised about it is over.", got[1].body)
		// The board is.
		got = nil
		feed(8, []gpu{{id: amdA[:len(amdA)-1] + "f", index: 7}})
		require.Equal(t, []string{"gpu.device.lost raised"}, brief(got))
	})
}

// What boards of NVIDIA have is reported by the events that they always had.
func TestRepairIsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet)
		var got []occurred
		for n := range 4 {
			md := one(gpu{points: []reading{
				{&names.GPURetiredPages, float64(n), []string{names.ErrorType, "uncorrected"}}, {&names.GPURetiredPending, 1, nil},
				{&names.GPURetiredFailure, 1, nil},
			}})(time.Now())
			got = append(got, append(b.feed(md), b.wait(interval)...)...)
		}
		require.Empty(t, got)
	})
}

// Corrected errors are reported where that is configured, and a limit on codes is counted.
func TestRASLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet, func(cfg *Config) { cfg.Events[names.EventRAS]["corrected"] = true })
		feed := func(codes ...float64) []occurred {
			g := gpu{id: amdA}
			for _, c := range codes {
				g.points = append(g.points, reading{&names.GPURASLast, c, []string{names.GPURASSeverity, "non_fatal_corrected"}})
			}
			return append(b.feed(one(g)(time.Now())), b.wait(interval)...)
		}
		require.Empty(t, feed(13))
		got := feed(24)
		require.Equal(t, []string{"gpu.ras raised"}, brief(got))
		require.Equal(t, "INFO", got[0].record.SeverityText())
		many := make([]float64, 1000)
		for i := range many {
			many[i] = float64(i + 100)
		}
		require.Len(t, feed(many...), 63, "with 24 that are 64 codes")
		require.Empty(t, feed(0.5, -1, 1e300))
	})
}
