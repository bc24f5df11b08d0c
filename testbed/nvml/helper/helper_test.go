// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package helper tests the process otelcol-gpu-nvml on a fake library.
package helper

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	nvmllab "github.com/otelcol-gpu/otelcol-gpu/testbed/nvml"
)

// address is a PCI address as requests have it.
func address(busID string) string { return deviceid.PCIAddress(busID) }

// value is the value of a reading, and whether there is one.
func value(values []nvmlproto.Value, name string) (float64, bool) {
	for _, v := range values {
		if v.Name == name && v.Return == nvmlproto.Success {
			return float64(v.V), true
		}
	}
	return 0, false
}

func TestEveryDriver(t *testing.T) {
	for _, driver := range nvmllab.Drivers {
		t.Run(driver.Name, func(t *testing.T) {
			t.Parallel()
			lab := nvmllab.Start(t, nvmllab.Options{Driver: driver.Name, Boards: 2})
			p := start(t, lab)
			a, ok := p.ask(all(lab))
			require.True(t, ok)
			assert.Equal(t, driver.Version, a.system.Driver)
			for _, b := range lab.Truth() {
				board := a.boards[address(b.PCIBusID)]
				require.NotNil(t, board)
				assert.Equal(t, b.UUID, board.UUID)
				assert.False(t, board.Lost)
				for name, want := range map[string]float64{
					"power.usage": float64(b.PowerMilliwatts), "temperature.gpu": float64(b.TemperatureC),
					"clock.sm": float64(b.SMClockMHz), "energy": float64(b.EnergyMillijoules),
				} {
					got, ok := value(board.Values, name)
					assert.True(t, ok, name)
					assert.Equal(t, want, got, name) //nolint:testifylint // integers
				}
				assert.Equal(t, driver.Number >= 520000, board.GPM)
			}
		})
	}
}

func TestGPMAndInstances(t *testing.T) {
	lab := nvmllab.Start(t, nvmllab.Options{Driver: "550", MIG: map[string][]string{"0": {"3g.40gb", "1g.10gb"}}})
	p := start(t, lab)
	var board *nvmlproto.Board
	measured := func() bool {
		return !slices.ContainsFunc(board.Instances, func(i nvmlproto.Instance) bool {
			_, ok := value(i.Values, "gpm.graphics")
			return !ok
		})
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		a, ok := p.ask(all(lab))
		require.True(t, ok)
		board = a.boards[all(lab).Boards[0]]
		require.Len(t, board.Instances, 2)
		if measured() {
			break
		}
	}
	assert.True(t, measured())
	for _, i := range board.Instances {
		_, ok := value(i.Values, "memory.used")
		assert.True(t, ok)
	}
	assert.Equal(t, &nvmlproto.MIG{Current: 1, Pending: 1}, board.MIG)
}

// Each of these hangs costs its own board, and neighbours nothing.
func TestHangs(t *testing.T) {
	const hanging = 3
	late := 0
	for _, call := range []string{
		"nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetUUID", "nvmlDeviceGetMigMode", "nvmlDeviceGetPowerUsage",
		"nvmlDeviceGetFieldValues", "nvmlDeviceGetMemoryInfo*", "nvmlGpmSampleGet", "nvmlDeviceGetComputeRunningProcesses*",
	} {
		t.Run(call, func(t *testing.T) {
			lab := nvmllab.Start(t, nvmllab.Options{Boards: 8})
			request := all(lab)
			stuck := request.Boards[hanging]
			p := start(t, lab)
			device := strconv.Itoa(hanging)
			if call == "nvmlDeviceGetHandleByPciBusId_v2" {
				device = "*" // the call has no device yet
				request.Boards = request.Boards[:hanging]
				_, ok := p.ask(request)
				require.True(t, ok)
				request = all(lab)
				request.Boards = request.Boards[:hanging+1]
			} else {
				_, ok := p.ask(request)
				require.True(t, ok)
			}
			lab.Fault(device, call, "hang")
			for range 3 {
				a, ok := p.ask(request, stuck)
				require.True(t, ok)
				for _, thread := range request.Boards {
					if thread != stuck && (a.boards[thread] == nil || a.boards[thread].UUID == "") {
						late++
						assert.Fail(t, "a neighbour is late", thread)
					}
				}
			}
			lab.Clear()
			for deadline := time.Now().Add(patience); ; {
				a, ok := p.ask(request)
				require.True(t, ok)
				if a.boards[stuck] != nil && a.boards[stuck].UUID != "" {
					break
				}
				require.True(t, time.Now().Before(deadline), "the board returns when its call does")
			}
		})
	}
	t.Logf("neighbours late %d", late)
}

func TestCrashes(t *testing.T) {
	lab := nvmllab.Start(t, nvmllab.Options{Boards: 2})
	for n := range 20 {
		lab.Fault("1", "nvmlDeviceGetPowerUsage", []string{"segv", "abort"}[n%2])
		p := start(t, lab)
		_, ok := p.ask(all(lab))
		assert.False(t, ok)
		require.Error(t, p.wait())
		lab.Clear()
		p = start(t, lab)
		a, ok := p.ask(all(lab))
		assert.True(t, ok)
		assert.Len(t, a.boards, 2)
		require.NoError(t, p.in.Close())
		require.NoError(t, p.wait())
	}
}

func TestEvents(t *testing.T) {
	lab := nvmllab.Start(t, nvmllab.Options{Boards: 2})
	p := start(t, lab)
	request := all(lab)
	lab.Fault("1", "nvmlEventSetWait*", "return", nvmlproto.GPUIsLost)
	_, ok := p.ask(request)
	require.True(t, ok)
	count := func(thread string, code uint64) (n int) {
		for _, e := range p.events {
			for _, x := range e.XID {
				if e.Thread == thread && x.Code == code {
					n += x.N
				}
			}
		}
		return n
	}
	p.eventually(func() bool {
		return slices.ContainsFunc(p.events, func(e nvmlproto.Event) bool { return e.Thread == request.Boards[0] && e.Ready })
	}, "events are waited for")
	lab.XID(0, -1, 94, 10_000)
	p.eventually(func() bool { return count(request.Boards[0], 94) >= 10_000 }, "all XIDs are reported")
	assert.Equal(t, 10_000, count(request.Boards[0], 94))
	assert.Less(t, len(p.events), 100, "a burst is not a frame each")
	waits := 0
	for _, c := range lab.Calls() {
		if c.End && c.Device == "1" && strings.HasPrefix(c.Name, "nvmlEventSetWait") {
			waits++
		}
	}
	assert.LessOrEqual(t, waits, 1, "a board that is lost is not waited for")
}

func TestEnd(t *testing.T) {
	for _, test := range []struct {
		name     string
		end      func(*process)
		fault    []any
		shutdown bool
	}{
		{"SIGTERM", func(p *process) { _ = p.cmd.Process.Signal(syscall.SIGTERM) }, nil, true},
		{"SIGTERM during a call", func(p *process) { _ = p.cmd.Process.Signal(syscall.SIGTERM) }, []any{"slow", 1500}, true},
		{"end of the input", func(p *process) { _ = p.in.Close() }, nil, false},
		{"end of the input during a call", func(p *process) { _ = p.in.Close() }, []any{"hang"}, false},
		{"frames that cannot be read", func(p *process) { _, _ = p.in.Write([]byte("\x00\x00\x00\x02no")) }, []any{"hang"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			lab := nvmllab.Start(t, nvmllab.Options{Boards: 1})
			p := start(t, lab)
			_, ok := p.ask(all(lab))
			require.True(t, ok)
			if test.fault != nil {
				lab.Fault("0", "nvmlDeviceGetPowerUsage", test.fault[0].(string), test.fault[1:]...)
				_, ok = p.ask(all(lab), all(lab).Boards[0])
				require.True(t, ok)
				p.eventually(func() bool {
					calls := lab.Calls()
					return slices.ContainsFunc(calls, func(c nvmllab.Call) bool { return !c.End && c.Name == "nvmlDeviceGetPowerUsage" })
				}, "the call")
			}
			test.end(p)
			begun := time.Now()
			err := p.wait()
			assert.Less(t, time.Since(begun), patience)
			if test.name == "frames that cannot be read" {
				require.Error(t, err)
				assert.Contains(t, p.stderr.String(), "cannot be read")
				return
			}
			require.NoError(t, err)
			if calls := lab.Calls(); test.shutdown {
				assert.Equal(t, "nvmlShutdown", calls[len(calls)-1].Name)
			}
		})
	}
}

func TestOnce(t *testing.T) {
	lab := nvmllab.Start(t, nvmllab.Options{Boards: 8})
	out, err := exec.Command(lab.Helper(), "-once", "-library", lab.Library).Output()
	require.NoError(t, err)
	var report struct {
		Hello  nvmlproto.Hello    `json:"hello"`
		System nvmlproto.System   `json:"system"`
		Boards []*nvmlproto.Board `json:"boards"`
		Calls  []nvmlproto.Call   `json:"calls"`
	}
	require.NoError(t, json.Unmarshal(out, &report))
	assert.Equal(t, lab.Library, report.System.Library)
	assert.Len(t, report.Boards, 8)
	for n, b := range report.Boards {
		assert.Equal(t, "#"+strconv.Itoa(n), b.Thread)
		_, ok := value(b.Values, "gpm.sm")
		assert.True(t, ok)
	}
	assert.Equal(t, "nvmlInit_v2", report.Calls[0].Name)
	assert.Equal(t, "nvmlShutdown", report.Calls[len(report.Calls)-1].Name)
}
