// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlrun

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	nvmllab "github.com/otelcol-gpu/otelcol-gpu/testbed/nvml"
)

func has(v map[string]float64, key string) bool {
	_, ok := v[key]
	return ok
}

// TestHang: a board that hangs is left out, and back with its call; its neighbours are in
// every scrape.
func TestHang(t *testing.T) {
	t.Parallel()
	lab := nvmllab.Start(t, nvmllab.Options{Boards: 8})
	r := Start(t, Keys(lab, nil))
	r.Await("the exporter up", up)
	boards := lab.Truth()
	lab.Fault("3", "nvmlDeviceGetPowerUsage", "hang")
	r.Await("seven boards", func(v map[string]float64) bool { return !has(v, boards[3].UUID+" hw.power") })
	from := len(r.Scrapes())
	for range 3 {
		r.Await("seven boards", func(v map[string]float64) bool { return !has(v, boards[3].UUID+" hw.power") })
	}
	for _, md := range r.Scrapes()[from:] {
		v := Values(md)
		for i, b := range boards {
			assert.Equal(t, i != 3, has(v, b.UUID+" hw.power"), "board %d", i)
		}
	}
	assert.InDelta(t, 1, r.Count("stuck", ""), 0)
	assert.Zero(t, r.Count("helper_restarts", ""))
	assert.Contains(t, r.Log(), "call:nvmlDeviceGetPowerUsage")
	lab.Clear()
	r.Await("eight boards", func(v map[string]float64) bool { return has(v, boards[3].UUID+" hw.power") })
	assert.Contains(t, r.Log(), "the GPU answers again")
	assert.Zero(t, r.Count("helper_restarts", ""))
}

// TestAllHang: with all boards stuck the helper is replaced.
func TestAllHang(t *testing.T) {
	t.Parallel()
	lab := nvmllab.Start(t, nvmllab.Options{Boards: 2})
	r := Start(t, Keys(lab, nil))
	r.Await("the exporter up", up)
	lab.Fault("*", "nvmlDeviceGetPowerUsage", "hang")
	r.Await("the exporter down", func(v map[string]float64) bool { return v["- gpu.exporter.up"] == 0 })
	require.Eventually(t, func() bool { return r.Count("helper_restarts", "stuck") > 0 }, patience, 20*time.Millisecond)
	lab.Clear()
	r.Await("the exporter up", up)
}

// TestCrash: the library ends the helper, and the next one answers.
func TestCrash(t *testing.T) {
	t.Parallel()
	lab := nvmllab.Start(t, nvmllab.Options{Boards: 2})
	r := Start(t, Keys(lab, nil))
	r.Await("the exporter up", up)
	for _, kind := range []string{"segv", "abort"} {
		lab.Fault("1", "nvmlDeviceGetPowerUsage", kind)
		r.Await("the exporter down", func(v map[string]float64) bool { return v["- gpu.exporter.up"] == 0 })
		lab.Clear()
		r.Await("the exporter up", up)
	}
	assert.InDelta(t, 2, r.Count("helper_restarts", "crashed"), 1)
}

// TestCrashOfOne: a board whose calls crash every helper does not take its neighbours away
// for ever.
func TestCrashOfOne(t *testing.T) {
	t.Parallel()
	lab := nvmllab.Start(t, nvmllab.Options{Boards: 2})
	r := Start(t, Keys(lab, nil))
	r.Await("the exporter up", up)
	boards := lab.Truth()
	lab.Fault("1", "nvmlDeviceGetPowerUsage", "segv")
	r.Await("the exporter down", func(v map[string]float64) bool { return v["- gpu.exporter.up"] == 0 })
	v := r.Await("the exporter up", up)
	assert.True(t, has(v, boards[0].UUID+" hw.power"))
	assert.False(t, has(v, boards[1].UUID+" hw.power"))
	assert.Contains(t, r.Log(), "helpers crash in calls for a GPU")
}

// TestRelease: while the release file exists, no helper runs.
func TestRelease(t *testing.T) {
	t.Parallel()
	lab := nvmllab.Start(t, nvmllab.Options{})
	file := filepath.Join(t.TempDir(), "release")
	r := Start(t, Keys(lab, map[string]any{"release_file": file}))
	r.Await("the exporter up", up)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	v := r.Await("the driver released", func(v map[string]float64) bool { return v["- gpu.driver.released"] == 1 })
	assert.Len(t, v, 1, "no exporter, and no device: %v", v)
	r.Await("the helper ended", func(map[string]float64) bool {
		calls := lab.Calls()
		return calls[len(calls)-1].Name == "nvmlShutdown"
	})
	calls := len(lab.Calls())
	r.Await("the driver released", func(v map[string]float64) bool { return v["- gpu.driver.released"] == 1 })
	assert.Len(t, lab.Calls(), calls)
	require.NoError(t, os.Remove(file))
	v = r.Await("the exporter up", up)
	assert.False(t, has(v, "- gpu.driver.released") && v["- gpu.driver.released"] != 0)
	assert.Contains(t, r.Log(), "the driver is left alone")
}

// TestDriver: another driver is loaded by another helper.
func TestDriver(t *testing.T) {
	t.Parallel()
	lab := nvmllab.Start(t, nvmllab.Options{})
	r := Start(t, Keys(lab, nil))
	r.Await("the exporter up", up)
	require.NoError(t, os.WriteFile(filepath.Join(lab.Root, "sys/module/nvidia/version"), []byte("575.51.02\n"), 0o600))
	require.Eventually(t, func() bool { return r.Count("helper_restarts", "driver") >= 1 }, patience, 20*time.Millisecond)
	r.Await("the exporter up", up)
}

// TestNothing: what a receiver does without hardware, library or helper.
func TestNothing(t *testing.T) {
	t.Parallel()
	lab := nvmllab.Start(t, nvmllab.Options{})
	for name, c := range map[string]struct {
		keys    map[string]any
		outcome string
		log     string
	}{
		"library": {map[string]any{"library": "/none/libnvidia-ml.so.1"}, "no_library", "/none/libnvidia-ml.so.1"},
		"helper":  {map[string]any{"helper": "/none/otelcol-gpu-nvml"}, "helper_missing", "install otelcol-gpu-nvml"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Start(t, Keys(lab, c.keys))
			v := r.Await("the exporter down", func(v map[string]float64) bool { return has(v, "- gpu.exporter.up") })
			assert.Zero(t, v["- gpu.exporter.up"])
			r.Await("a second scrape", func(map[string]float64) bool { return true })
			assert.Positive(t, r.Count("scrapes", c.outcome))
			assert.Contains(t, r.Log(), c.log)
			assert.Equal(t, 1, strings.Count(r.Log(), "warn the driver gives no GPU metrics"))
		})
	}
	t.Run("hardware", func(t *testing.T) {
		r := Start(t, Keys(lab, map[string]any{"root_path": t.TempDir(), "xid": map[string]any{"kernel_log": "off"}}))
		require.Eventually(t, func() bool { return r.Log() != "" }, patience, 20*time.Millisecond)
		r.Stop()
		assert.Empty(t, r.Scrapes())
		assert.Equal(t, 1, strings.Count(r.Log(), "\n"))
		assert.Contains(t, r.Log(), "this host has no NVIDIA GPU")
	})
}

// TestLost: the series of a board that has left its bus end, and it is one line in the log.
func TestLost(t *testing.T) {
	t.Parallel()
	lab := nvmllab.Start(t, nvmllab.Options{Boards: 2})
	r := Start(t, Keys(lab, nil))
	r.Await("the exporter up", up)
	boards := lab.Truth()
	lab.Fault("1", "*", "return", 15)
	v := r.Await("one board", func(v map[string]float64) bool { return !has(v, boards[1].UUID+" hw.power") })
	assert.True(t, has(v, boards[0].UUID+" hw.power"))
	r.Await("one board still", func(v map[string]float64) bool { return !has(v, boards[1].UUID+" hw.power") })
	assert.Equal(t, 1, strings.Count(r.Log(), "a GPU has fallen off the bus"))
	assert.InDelta(t, 1, r.Count("devices", ""), 0)
}

// TestSuspended: no call is made for a board that sleeps.
func TestSuspended(t *testing.T) {
	t.Parallel()
	lab := nvmllab.Start(t, nvmllab.Options{Boards: 2})
	boards := lab.Truth()
	power := func(state string) {
		for file, text := range map[string]string{"control": "auto", "runtime_status": state} {
			path := filepath.Join(lab.Root, "sys/bus/pci/devices", pci(boards[1].PCIBusID), "power", file)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o600))
		}
	}
	power("active")
	r := Start(t, Keys(lab, nil))
	v := r.Await("the exporter up", up)
	assert.True(t, has(v, boards[1].UUID+" hw.power"))
	power("suspended")
	v = r.Await("it suspended", func(v map[string]float64) bool { return v[boards[1].UUID+" gpu.device.suspended"] == 1 })
	assert.False(t, has(v, boards[1].UUID+" hw.power"))
	assert.Positive(t, v[boards[1].UUID+" hw.gpu.memory.limit"])
	assert.True(t, has(v, boards[0].UUID+" hw.power"))
	assert.False(t, has(v, boards[0].UUID+" gpu.device.suspended"))
	power("active")
	r.Await("it awake", func(v map[string]float64) bool { return has(v, boards[1].UUID+" hw.power") })
}

// pci is an address as sysfs has it.
func pci(address string) string {
	address = strings.ToLower(address)
	if len(address) == len("00000000:3b:00.0") {
		address = address[4:]
	}
	return address
}
