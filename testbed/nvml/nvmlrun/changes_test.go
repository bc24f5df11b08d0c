// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlrun

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/miglayout"
	nvmllab "github.com/otelcol-gpu/otelcol-gpu/testbed/nvml"
)

// long runs a case in make test-nvml alone.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("NVML_CASES") != "all" {
		t.Skip("takes long: make test-nvml")
	}
}

func released(v map[string]float64) bool { return v["- gpu.driver.released"] == 1 }

// helperGone waits, not for long, until no helper has the library any more.
func helperGone(t *testing.T, lab *nvmllab.Lab) {
	t.Helper()
	calls := lab.Calls()
	pid, err := strconv.Atoi(calls[len(calls)-1].PID)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }, patience, 20*time.Millisecond)
	calls = lab.Calls()
	assert.Equal(t, "nvmlShutdown", calls[len(calls)-1].Name)
}

// TestMIGChange: while a change of MIG waits for the driver, by the mode of a board or by the
// node's label, no helper runs, and the exporter is not down.
func TestMIGChange(t *testing.T) {
	t.Parallel()
	for name, pending := range map[string]bool{"mode": true, "label": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lab := nvmllab.Start(t, nvmllab.Options{})
			node := "changing-" + name // the label is this process'
			r := Start(t, Keys(lab, map[string]any{"node_name": node}))
			r.Await("the exporter up", up)
			reconfiguring := func(is bool) { miglayout.SetReconfiguring(node, time.Now(), is) }
			t.Cleanup(func() { reconfiguring(false) })
			if pending {
				lab.Fault("0", "mig.pending", "value", 1)
			} else {
				reconfiguring(true)
			}
			v := r.Await("the driver released", released)
			assert.Len(t, v, 1, "no exporter, and no device: %v", v)
			helperGone(t, lab)
			calls := len(lab.Calls())
			r.Await("the driver released", released)
			assert.Len(t, lab.Calls(), calls)
			lab.Clear()
			reconfiguring(true)
			r.Await("the driver released", released)
			reconfiguring(false) // which ends the wait for a mode too
			v = r.Await("the exporter up", up)
			assert.True(t, has(v, lab.Truth()[0].UUID+" hw.power"))
			assert.InDelta(t, 1, r.Count("helper_restarts", "release"), 0)
			assert.Equal(t, 1, strings.Count(r.Log(), "the driver is left alone"))
		})
	}
}

// TestBoards: the driver lists its boards when a helper starts, so another one is started
// where one comes or goes.
func TestBoards(t *testing.T) {
	t.Parallel()
	lab := nvmllab.Start(t, nvmllab.Options{Boards: 2})
	boards := lab.Truth()
	r := Start(t, Keys(lab, nil))
	r.Await("both", func(v map[string]float64) bool { return has(v, boards[1].UUID+" hw.power") })
	link := filepath.Join(lab.Root, "sys/bus/pci/devices", pci(boards[1].PCIBusID))
	target, err := os.Readlink(link)
	require.NoError(t, err)
	for n, there := range []bool{false, true} {
		if there {
			require.NoError(t, os.Symlink(target, link))
		} else {
			require.NoError(t, os.Remove(link))
		}
		require.Eventually(t, func() bool { return r.Count("helper_restarts", "boards") == float64(n+1) }, patience, 20*time.Millisecond)
		v := r.Await("them as they are", func(v map[string]float64) bool { return up(v) && has(v, boards[1].UUID+" hw.power") == there })
		assert.True(t, has(v, boards[0].UUID+" hw.power"))
	}
	assert.InDelta(t, 2, r.Count("helper_restarts", ""), 0)
}

// TestRest: a board that the kernel may suspend is left alone once nothing uses it, unless it is
// to be woken: then it is read whatever its state.
func TestRest(t *testing.T) {
	t.Parallel()
	for _, wake := range []bool{false, true} {
		t.Run(fmt.Sprint("wake ", wake), func(t *testing.T) {
			t.Parallel()
			lab := nvmllab.Start(t, nvmllab.Options{Boards: 2})
			boards := lab.Truth()
			power := filepath.Join(lab.Root, "sys/bus/pci/devices", pci(boards[1].PCIBusID), "power")
			require.NoError(t, os.WriteFile(filepath.Join(power, "control"), []byte("auto\n"), 0o600))
			lab.Fault("*", "utilization.gpu", "value", 0)
			lab.Fault("*", "memory.used", "value", 0)
			r := Start(t, Keys(lab, map[string]any{"wake": wake}))
			read := func(v map[string]float64) bool { return has(v, boards[1].UUID+" hw.power") }
			r.Await("both", read)
			if wake {
				require.NoError(t, os.WriteFile(filepath.Join(power, "runtime_status"), []byte("suspended\n"), 0o600))
				for range 5 {
					assert.True(t, read(r.Await("a scrape", up)))
				}
				return
			}
			v := r.Await("one at rest", func(v map[string]float64) bool { return up(v) && !read(v) })
			assert.Positive(t, v[boards[1].UUID+" hw.gpu.memory.limit"], "it is not lost")
			assert.True(t, has(v, boards[0].UUID+" hw.power"), "which is not suspended")
		})
	}
}

// TestNoRights: a right that is missing costs its own values, and is one line in the log.
func TestNoRights(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"nvmlDeviceGetMigDeviceHandleByIndex", "nvmlGpmSampleGet", "nvmlGpmMigSampleGet"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			lab := nvmllab.Start(t, nvmllab.Options{Boards: 2, MIG: map[string][]string{"0": {"3g.40gb"}}})
			boards := lab.Truth()
			instance := boards[0].UUID + "/" + strconv.Itoa(boards[0].Instances[0].ID)
			r := Start(t, Keys(lab, nil))
			values := map[string][]string{ // that each call gives
				"nvmlDeviceGetMigDeviceHandleByIndex": {instance + " hw.gpu.memory.limit"},
				"nvmlGpmSampleGet":                    {boards[1].UUID + " gpu.sm.active"},
				"nvmlGpmMigSampleGet":                 {instance + " gpu.sm.active"},
			}
			all := func(v map[string]float64) bool {
				for _, of := range values {
					for _, key := range of {
						if !has(v, key) {
							return false
						}
					}
				}
				return true
			}
			r.Await("all", all)
			r.Stop()
			lab.Fault("*", call, "return", 4)
			r = Start(t, Keys(lab, nil))
			r.Await("the exporter up", up)
			r.Await("the next window", up)
			for range 2 {
				v := r.Await("a scrape", up)
				for other, of := range values {
					for _, key := range of {
						gone := other == call || call == "nvmlDeviceGetMigDeviceHandleByIndex" && strings.HasPrefix(key, instance)
						assert.Equal(t, !gone, has(v, key), key)
					}
				}
				assert.True(t, has(v, boards[0].UUID+" hw.power"))
			}
			assert.Equal(t, 1, strings.Count(r.Log(), "rights are missing for values"), r.Log())
			assert.Contains(t, r.Log(), "remedy:")
		})
	}
}

// TestUnknownError: after a daemon-reload all boards of a container return 999, and so does
// nvmlInit to the next helper.
func TestUnknownError(t *testing.T) {
	long(t)
	t.Setenv("container", "docker")
	lab := nvmllab.Start(t, nvmllab.Options{Boards: 2})
	r := Start(t, Keys(lab, nil))
	r.Await("the exporter up", up)
	for board := range 2 {
		lab.Fault(strconv.Itoa(board), "nvml*", "return", 999)
	}
	lab.Fault("-", "nvmlInit_v2", "return", 999)
	down := func(v map[string]float64) bool { return v["- gpu.exporter.up"] == 0 }
	r.Await("the exporter down", down)
	assert.NotContains(t, r.Log(), "systemctl daemon-reload")
	require.Eventually(t, func() bool { return strings.Contains(r.Log(), "systemctl daemon-reload") }, patience, 20*time.Millisecond)
	assert.Positive(t, r.Count("helper_restarts", "unknown_error"))
	lab.Clear()
	r.Await("the exporter up", up)
}
