// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmllab

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	simnvml "github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/nvml"
)

var job = []gpusim.Pod{{Namespace: "train", Name: "job-0", Container: "main", Devices: []string{"0"}, Load: gpusim.Training}}

// Lists of processes are read in the layout of each driver, and refused in one that is not
// known.
func TestProcesses(t *testing.T) {
	t.Parallel()
	for _, d := range quick(Drivers, 3) {
		scenario(t, d.Name, Options{Driver: d.Name, Boards: 1, Pods: job}, func(w *world) {
			board := w.helper.Scrape(limit).Of(w.Lab, 0)
			require.NotNil(w.T, board)
			require.NotNil(w.T, board.Processes)
			require.Len(w.T, board.Processes.List, 1)
			p := board.Processes.List[0]
			assert.Equal(w.T, nvmlproto.Number(w.Truth()[0].Row.UsedMiB)*(1<<20), p.Memory)
			assert.Equal(w.T, "compute", p.Type)
			assert.Nil(w.T, p.GI)
			require.Len(w.T, board.Processes.Busy, 1)
			assert.Equal(w.T, p.PID, board.Processes.Busy[0].PID)
			assert.Empty(w.T, board.Refused)
		})
	}
	for _, c := range quick([]struct {
		name, kind string
		argument   []any
		reason     string
	}{
		{"entries of 40 bytes", "stride", []any{40}, nvmlproto.ReasonStride},
		{"beyond the entries", "overrun", nil, nvmlproto.ReasonOverrun},
		{"a list that grows", "grow", []any{2000}, nvmlproto.ReasonBuffer},
	}, 2) {
		scenario(t, c.name, Options{Pods: job}, func(w *world) {
			w.Fault("0", "nvmlDeviceGetComputeRunningProcesses_v3", c.kind, c.argument...)
			a := w.scrape()
			w.right(a)
			board := a.Of(w.Lab, 0)
			assert.True(w.T, slices.ContainsFunc(board.Refused, func(r nvmlproto.Refused) bool { return r.Reason == c.reason }), board.Refused)
			if board.Processes != nil {
				assert.Empty(w.T, board.Processes.List)
			}
		})
	}
	scenario(t, "a list that grows a little", Options{Pods: job}, func(w *world) {
		w.Fault("0", "nvmlDeviceGetComputeRunningProcesses_v3", "grow", 100, 2)
		board := w.scrape().Of(w.Lab, 0)
		require.NotNil(w.T, board.Processes)
		assert.Greater(w.T, len(board.Processes.List), 100)
	})
	scenario(t, "on an instance", Options{
		Driver: "575", // that of 550 has no GPU instance in its entries
		Boards: 1, MIG: map[string][]string{"0": {"3g.40gb", "1g.10gb"}},
		Pods: []gpusim.Pod{{Namespace: "n", Name: "p", Container: "c", Devices: []string{"0:1"}, Load: gpusim.Training}},
	}, func(w *world) {
		board := w.helper.Scrape(limit).Of(w.Lab, 0)
		require.NotNil(w.T, board.Processes)
		require.Len(w.T, board.Processes.List, 1)
		require.NotNil(w.T, board.Processes.List[0].GI)
		assert.Equal(w.T, w.Truth()[0].Instances[1].ID, *board.Processes.List[0].GI)
		assert.Empty(w.T, board.Processes.Busy)
	})
}

// xids adds up the XIDs that were reported of a board, and whether waiting for them has
// ended for good.
func xids(frames []nvmlproto.Frame, thread string) (counts map[uint64]int, ready int, returns []int) {
	counts = map[uint64]int{}
	for _, f := range frames {
		if f.Event == nil || f.Event.Thread != thread {
			continue
		}
		for _, x := range f.Event.XID {
			counts[x.Code] += x.N
		}
		if f.Event.Ready {
			ready++
		}
		if f.Event.Return != 0 {
			returns = append(returns, f.Event.Return)
		}
	}
	return counts, ready, returns
}

// awaits waits until boards wait for events.
func (w *world) awaits(boards ...int) {
	w.T.Helper()
	w.scrape()
	for _, board := range boards {
		require.True(w.T, w.helper.Until(limit, func(frames []nvmlproto.Frame) bool {
			_, ready, _ := xids(frames, w.thread(board))
			return ready > 0
		}))
	}
}

// Events are counted exactly, however many come at once and whatever a neighbour's do.
func TestEvents(t *testing.T) {
	t.Parallel()
	total := func(w *world, board int, code uint64, n int) {
		w.T.Helper()
		w.helper.Until(limit, func(frames []nvmlproto.Frame) bool {
			counts, _, _ := xids(frames, w.thread(board))
			return counts[code] >= n
		})
		counts, _, _ := xids(w.helper.Frames(), w.thread(board))
		assert.Equal(w.T, n, counts[code])
	}
	scenario(t, "burst of 10,000", Options{}, func(w *world) {
		w.awaits(0, 1)
		w.XID(0, -1, 31, 6000)
		w.XID(1, -1, 13, 2)
		w.XID(0, -1, 31, 4000)
		total(w, 0, 31, 10_000)
		total(w, 1, 13, 2)
		w.right(w.scrape())
	})
	scenario(t, "of before", Options{}, func(w *world) {
		w.XID(0, -1, 31, 5)
		w.awaits(0)
		w.XID(0, -1, 31, 1)
		total(w, 0, 31, 1)
	})
	for _, returned := range []int{15, 28, 999} {
		scenario(t, nvmlproto.ReturnText(returned), Options{}, func(w *world) {
			w.awaits(0, 1)
			w.Fault("0", "nvmlEventSetWait_v2", "return", returned)
			require.True(w.T, w.helper.Until(limit, func(frames []nvmlproto.Frame) bool {
				_, _, returns := xids(frames, w.thread(0))
				return slices.Contains(returns, returned)
			}))
			w.XID(1, -1, 94, 3)
			total(w, 1, 94, 3)
			assert.Less(w.T, w.calls("nvmlEventSetWait_v2"), 20, "it does not spin")
			if returned == 999 { // it registers again
				w.Clear()
				require.True(w.T, w.helper.Until(limit, func(frames []nvmlproto.Frame) bool {
					_, ready, _ := xids(frames, w.thread(0))
					return ready > 1
				}))
				w.XID(0, -1, 95, 1)
				total(w, 0, 95, 1)
			}
		})
	}
	scenario(t, "not supported", Options{}, func(w *world) {
		w.Fault("0", "events", "absent")
		w.right(w.scrape())
		assert.True(w.T, w.helper.Until(limit, func(frames []nvmlproto.Frame) bool {
			_, _, returns := xids(frames, w.thread(0))
			return slices.Equal(returns, []int{3})
		}))
	})
	mig := Options{MIG: map[string][]string{"0": {"3g.40gb", "1g.10gb"}}}
	scenario(t, "of an instance", mig, func(w *world) {
		w.awaits(0)
		gi := w.Truth()[0].Instances[1].ID
		w.XID(0, gi, 94, 2)
		total(w, 0, 94, 2)
		for _, f := range w.helper.Frames() {
			if f.Event != nil {
				for _, x := range f.Event.XID {
					require.NotNil(w.T, x.GI)
					assert.Equal(w.T, gi, *x.GI)
				}
			}
		}
	})
	scenario(t, "change of MIG", mig, func(w *world) {
		w.awaits(0)
		require.NoError(w.T, w.Fleet.SetMIG(w.Node, 0, []string{"7g.80gb"}))
		w.Write()
		w.Queue(simnvml.Event{N: 1, Type: 0x100, Board: 0})
		assert.True(w.T, w.helper.Until(limit, func(frames []nvmlproto.Frame) bool {
			return slices.ContainsFunc(frames, func(f nvmlproto.Frame) bool { return f.Event != nil && f.Event.MIG })
		}))
		board := w.scrape().Of(w.Lab, 0)
		require.Len(w.T, board.Instances, 1)
		assert.Equal(w.T, w.Truth()[0].Instances[0].UUID, board.Instances[0].Compute[0].UUID)
	})
}

// Handles of instances mean others after a change, and lists of them have holes.
func TestLayouts(t *testing.T) {
	t.Parallel()
	three := Options{MIG: map[string][]string{"0": {"1g.10gb", "1g.10gb", "1g.10gb"}}}
	for _, returned := range []int{6, 2} {
		scenario(t, "hole/"+nvmlproto.ReturnText(returned), three, func(w *world) {
			w.Fault("0", "nvmlDeviceGetMigDeviceHandleByIndex(1)", "return", returned)
			assert.Len(w.T, w.scrape().Of(w.Lab, 0).Instances, 2)
		})
	}
	scenario(t, "no rights", three, func(w *world) {
		w.Fault("0", "nvmlDeviceGetMigDeviceHandleByIndex", "return", 4)
		a := w.scrape()
		assert.Empty(w.T, a.Of(w.Lab, 0).Instances)
		w.right(a)
	})
	scenario(t, "the GI is another's", three, func(w *world) {
		w.scrape()
		w.helper.Window()
		w.Advance(10 * time.Second)
		w.scrape()
		require.NoError(w.T, w.Fleet.SetMIG(w.Node, 0, []string{"2g.20gb", "1g.10gb"}))
		w.helper.Window()
		w.Advance(10 * time.Second)
		board := w.scrape().Of(w.Lab, 0)
		require.Len(w.T, board.Instances, 2)
		for _, i := range board.Instances {
			_, rates := got(i.Values)
			assert.Empty(w.T, rates, "a new instance's window begins")
			j := slices.IndexFunc(w.Truth()[0].Instances, func(r gpusim.DriverRow) bool { return r.ID == i.GI })
			assert.Equal(w.T, w.Truth()[0].Instances[j].UUID, i.Compute[0].UUID)
		}
	})
	scenario(t, "MIG is switched off", three, func(w *world) {
		w.scrape()
		require.NoError(w.T, w.Fleet.SetMIG(w.Node, 0, nil))
		w.Write()
		a := w.scrape()
		assert.Empty(w.T, a.Of(w.Lab, 0).Instances)
		w.right(a)
	})
	scenario(t, "a mode that waits", three, func(w *world) {
		w.Fault("0", "mig.pending", "value", 0)
		assert.Equal(w.T, &nvmlproto.MIG{Current: 1, Pending: 0}, w.scrape().Of(w.Lab, 0).MIG)
	})
}
