// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmllab

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// A board whose call hangs costs its seven neighbours nothing: nothing waits for it, it
// gets no second call, and it is back when its call is.
func TestHangs(t *testing.T) {
	t.Parallel()
	for _, call := range quick([]string{
		power, "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetFieldValues", "nvmlDeviceGetUUID", "nvmlDeviceGetMigMode",
		"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetComputeRunningProcesses_v3",
	}, 3) {
		scenario(t, call, Options{Boards: 8}, func(w *world) {
			w.Fault("0", call, "hang")
			for range 3 {
				w.stuck()
			}
			assert.Equal(w.T, 1, w.calls(call))
			w.End("0", call)
			assert.Eventually(w.T, func() bool { return w.helper.Scrape(limit).Of(w.Lab, 0) != nil }, limit, 50*time.Millisecond)
			w.right(w.scrape())
		})
	}
	for _, call := range quick([]string{"nvmlEventSetWait_v2", "nvmlDeviceRegisterEvents", "nvmlDeviceGetSupportedEventTypes"}, 2) {
		scenario(t, call, Options{Boards: 8}, func(w *world) {
			w.Fault("0", call, "hang")
			w.right(w.scrape())
			w.right(w.scrape())
		})
	}
	// All boards' calls of GPM go one at a time: values that are no GPM's go on.
	scenario(t, "nvmlGpmSampleGet", Options{Boards: 8}, func(w *world) {
		w.Fault("0", "nvmlGpmSampleGet", "hang")
		for range 2 {
			w.stuck()
		}
	})
	scenario(t, "nvmlInit_v2", Options{}, func(w *world) {
		w.Fault("-", "nvmlInit_v2", "hang")
		id := w.helper.Request()
		begun := func(frames []nvmlproto.Frame) bool {
			return len(frames) > 0 && frames[len(frames)-1].Begin != nil && frames[len(frames)-1].Begin.Name == "nvmlInit_v2"
		}
		require.True(w.T, w.helper.Until(limit, begun), "the call is announced")
		w.Clear()
		assert.True(w.T, w.helper.Until(limit, func(frames []nvmlproto.Frame) bool {
			answers := 0
			for _, f := range frames {
				if f.Board != nil && f.Board.ID == id {
					answers++
				}
			}
			return answers == 3
		}))
		w.right(w.scrape())
	})
}

// A process that must end does, whatever the library does.
func TestEnds(t *testing.T) {
	t.Parallel()
	scenario(t, "end of input", Options{}, func(w *world) {
		w.scrape()
		w.helper.Close()
		assert.Zero(w.T, w.helper.Exit(limit))
	})
	scenario(t, "end of input while a call hangs", Options{}, func(w *world) {
		w.Fault("0", power, "hang")
		w.stuck()
		w.helper.Close()
		w.helper.Exit(limit)
	})
	scenario(t, "SIGTERM", Options{}, func(w *world) {
		w.scrape()
		w.helper.Signal(syscall.SIGTERM)
		assert.Zero(w.T, w.helper.Exit(limit))
		assert.True(w.T, w.has("nvmlShutdown"))
	})
	scenario(t, "SIGTERM while a call is slow", Options{}, func(w *world) {
		w.Fault("0", power, "slow", 1500)
		w.helper.Request()
		require.True(w.T, w.helper.Until(limit, func(frames []nvmlproto.Frame) bool {
			for _, f := range frames {
				if f.Begin != nil && f.Begin.Name == power && f.Begin.Thread == w.thread(0) {
					return true
				}
			}
			return false
		}))
		w.helper.Signal(syscall.SIGTERM)
		assert.Zero(w.T, w.helper.Exit(limit))
		assert.True(w.T, w.has("nvmlShutdown"))
	})
	for _, kind := range []string{"segv", "abort"} {
		for _, call := range quick([]string{power, "nvmlInit_v2", "nvmlDeviceGetHandleByPciBusId_v2", "nvmlEventSetWait_v2"}, 4) {
			scenario(t, fmt.Sprint(kind, "/", call), Options{}, func(w *world) {
				device := map[bool]string{true: "-", false: "0"}[call == "nvmlInit_v2"]
				w.Fault(device, call, kind)
				w.helper.Request()
				assert.NotZero(w.T, w.helper.Exit(limit))
			})
		}
	}
}

func (w *world) has(call string) bool {
	for _, c := range w.Calls() {
		if c.Name == call {
			return true
		}
	}
	return false
}

// Boards that are not asked for are left alone, handle and all.
func TestBoardsThatSleep(t *testing.T) {
	t.Parallel()
	scenario(t, "not asked for", Options{}, func(w *world) {
		a := w.scrape(func(r *nvmlproto.Request) { r.Boards = r.Boards[1:] })
		assert.Len(w.T, a.Boards, 2)
		for _, c := range w.Calls() {
			assert.NotEqual(w.T, "0", c.Device, c.Name)
		}
		w.right(w.scrape())
		a = w.scrape(func(r *nvmlproto.Request) { r.Boards = r.Boards[1:] })
		assert.Len(w.T, a.Boards, 2)
	})
	scenario(t, "by index", Options{}, func(w *world) {
		a := w.helper.Scrape(limit, func(r *nvmlproto.Request) { r.Boards, r.ByIndex = nil, true })
		require.NotNil(w.T, a.System)
		assert.ElementsMatch(w.T, []string{"#0", "#1", "#2"}, a.System.Answering)
		assert.Equal(w.T, w.Truth()[2].UUID, a.Boards["#2"].UUID)
	})
}
