// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/otelcol-gpu-nvml/internal/nvml"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// first is the board of a laboratory with one.
const first = "0000:00:00.0"

func instance(gi int, name string, uuids ...string) nvml.Instance {
	i := nvml.Instance{Instance: nvmlproto.Instance{GI: gi, Name: name}, Device: nvml.Device(100 + gi)}
	for n, uuid := range uuids {
		i.Compute = append(i.Compute, nvmlproto.Compute{CI: n, UUID: uuid})
	}
	return i
}

func TestWindowsOfGPM(t *testing.T) {
	inLab(t, &fake{boards: 1, gpm: true}, func(l *lab) {
		for _, step := range []struct {
			name  string
			after time.Duration
			want  bool
		}{
			{"the first sample starts a window", 0, false},
			{"too early", 50 * time.Millisecond, false},
			{"the window went on", 50 * time.Millisecond, true},
			{"as long as two intervals", 30 * time.Second, true},
			{"after a gap", 31 * time.Second, false},
			{"from then on", 15 * time.Second, true},
		} {
			time.Sleep(step.after)
			_, boards := l.ask(0, nvmlproto.GroupProfiling)
			assert.Equal(t, step.want, len(boards[first].Values) > 0, step.name)
		}
		assert.Equal(t, 2, l.fake.samples, "turn and turn about")
	})
}

func TestWindowsOfInstances(t *testing.T) {
	f := &fake{boards: 1, gpm: true, mig: &nvmlproto.MIG{Current: 1, Pending: 1}}
	inLab(t, f, func(l *lab) {
		measured := func(instances ...nvml.Instance) []bool {
			f.mu.Lock()
			f.instances = instances
			f.mu.Unlock()
			time.Sleep(15 * time.Second)
			_, boards := l.ask(0, nvmlproto.GroupUtilization)
			assert.Empty(t, boards[first].Values[4:], "the board has no window without the group profiling")
			var list []bool
			for _, i := range boards[first].Instances {
				list = append(list, len(i.Values) > 0)
			}
			return list
		}
		small, large := instance(7, "MIG 1g.10gb", "MIG-a"), instance(1, "MIG 3g.40gb", "MIG-b")
		assert.Equal(t, []bool{false, false}, measured(small, large))
		assert.Equal(t, []bool{true, true}, measured(small, large))
		assert.Equal(t, []bool{false, true}, measured(instance(7, "MIG 1g.20gb", "MIG-c"), large), "another instance with the number")
		assert.Equal(t, 1, f.called("forget"), "and with the handle")
		assert.Equal(t, []bool{true, false}, measured(instance(7, "MIG 1g.20gb", "MIG-c"), instance(1, "MIG 3g.40gb", "MIG-b", "MIG-d")), "another compute instance")
		assert.Empty(t, measured())
		assert.Zero(t, f.samples, "all are freed")
	})
}

func TestRefusedGPM(t *testing.T) {
	for _, test := range []struct {
		call string
		r    nvml.Return
		want bool // values that have the return
	}{
		{"support", nvmlproto.NoPermission, true}, {"support", nvml.NotSupported, false}, {"support", nvml.FunctionNotFound, false},
		{"sample alloc", nvmlproto.NoPermission, true}, {"sample", nvmlproto.NoPermission, true}, {"metrics", nvml.Unknown, true},
	} {
		inLab(t, &fake{boards: 1, gpm: test.call != "support"}, func(l *lab) {
			l.fake.fault(test.call, fault{returns: test.r})
			l.ask(0, nvmlproto.GroupProfiling)
			time.Sleep(time.Second)
			_, boards := l.ask(0, nvmlproto.GroupProfiling)
			values := boards[first].Values
			require.Equal(t, test.want, len(values) > 0, test.call)
			for _, v := range values {
				assert.Equal(t, int(test.r), v.Return)
			}
		})
	}
}

func TestAChangeOfMIGDuringAScrape(t *testing.T) {
	f := &fake{
		boards: 1, mig: &nvmlproto.MIG{Current: 1, Pending: 1}, types: nvml.EventMIG,
		instances: []nvml.Instance{instance(7, "MIG 1g.10gb", "MIG-a")},
	}
	inLab(t, f, func(l *lab) {
		l.ask(0, nvmlproto.GroupMemory)
		f.during = func() {
			f.during = nil
			f.mu.Lock()
			f.instances = []nvml.Instance{instance(1, "MIG 3g.40gb", "MIG-b")}
			f.mu.Unlock()
			f.events <- nvml.Event{Type: nvml.EventMIG, GI: nvml.NoInstance}
			time.Sleep(time.Millisecond)
		}
		_, boards := l.ask(time.Millisecond, nvmlproto.GroupMemory)
		require.Len(t, boards[first].Instances, 1)
		assert.Equal(t, 1, boards[first].Instances[0].GI, "the new list in the same scrape")
	})
}

func TestListsThatAreNotComplete(t *testing.T) {
	var many []nvml.Instance
	for gi := range nvmlproto.MaxInstances + 2 {
		many = append(many, instance(gi, "MIG 1g.10gb", "MIG-a"))
	}
	inLab(t, &fake{boards: 1, mig: &nvmlproto.MIG{Current: 1}, instances: many}, func(l *lab) {
		l.fake.fault("instances", fault{returns: nvmlproto.NoPermission})
		l.fake.fault("processes", fault{returns: nvml.Unknown})
		_, boards := l.ask(0, nvmlproto.GroupProcesses)
		assert.Len(t, boards[first].Instances, nvmlproto.MaxInstances)
		assert.Equal(t, []nvmlproto.Refused{
			{Call: listOfInstances, Reason: "return_4", N: 1}, {Call: listOfInstances, Reason: nvmlproto.ReasonLimit, N: 2},
			{Call: listOfProcesses, Reason: "return_999", N: 1},
		}, boards[first].Refused)
		for _, step := range []struct {
			after time.Duration
			calls int
		}{{4 * time.Second, 1}, {time.Second, 2}} {
			time.Sleep(step.after)
			_, boards = l.ask(0, nvmlproto.GroupProcesses)
			assert.Len(t, boards[first].Processes.List, 1)
			assert.Equal(t, step.calls, l.fake.called("processes"), "not more often than every 5 s")
		}
	})
}

func TestPlan(t *testing.T) {
	all := nvmlproto.Request{Groups: nvmlproto.Groups, PCIe: true}
	for _, test := range []struct {
		name      string
		request   nvmlproto.Request
		board     nvmlproto.Board
		hourly    bool
		has, lack []string
	}{
		{"Turing", all, nvmlproto.Board{Arch: 6}, true, []string{"retired.pending", "temperature.limit.slowdown", "pcie.transmit"}, []string{"temperature.margin", "vgpu.licensed"}},
		{"Ampere", all, nvmlproto.Board{Arch: 7}, true, []string{"remapped.pending", "temperature.limit.slowdown"}, []string{"retired.pending", "temperature.margin"}},
		{"Ada", all, nvmlproto.Board{Arch: 8}, true, []string{"temperature.margin"}, []string{"temperature.limit.slowdown"}},
		{"unknown architecture", all, nvmlproto.Board{Arch: archUnknown}, true, nil, []string{"temperature.margin", "temperature.limit.slowdown"}},
		{"not hourly", all, nvmlproto.Board{Arch: 6}, false, []string{"temperature.gpu"}, []string{"temperature.limit.slowdown"}},
		{"GPM", all, nvmlproto.Board{GPM: true}, false, nil, []string{"pcie.transmit"}},
		{"PCIe not asked for", nvmlproto.Request{Groups: nvmlproto.Groups}, nvmlproto.Board{}, false, nil, []string{"pcie.transmit"}},
		{"instances", all, nvmlproto.Board{Instances: []nvmlproto.Instance{{}}}, false, []string{"recovery.action"}, []string{"remapped.pending"}},
		{"vGPU", all, nvmlproto.Board{Virtual: guest}, false, []string{"vgpu.licensed"}, nil},
		{"one group", nvmlproto.Request{Groups: []nvmlproto.Group{nvmlproto.GroupPower}}, nvmlproto.Board{}, false, []string{"energy"}, []string{"temperature.gpu"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			planned := map[string]bool{}
			for _, r := range newPlan(&test.request, &test.board, test.hourly).board {
				planned[r.Name] = true
			}
			for _, name := range test.has {
				assert.True(t, planned[name], name)
			}
			for _, name := range test.lack {
				assert.False(t, planned[name], name)
			}
		})
	}
}

// reported are the events of a board so far.
func (l *lab) reported(events []nvmlproto.Event) []nvmlproto.Event {
	synctest.Wait()
	for _, f := range l.take() {
		if f.Event != nil {
			events = append(events, *f.Event)
		}
	}
	return events
}

func TestEvents(t *testing.T) {
	gi := 7
	f := &fake{boards: 1, types: nvml.EventXID | nvml.EventMIG, mig: &nvmlproto.MIG{}}
	inLab(t, f, func(l *lab) {
		ask := func() { l.Ask(&nvmlproto.Request{Boards: l.all(), Groups: []nvmlproto.Group{nvmlproto.GroupXID}}) }
		ask()
		event := nvmlproto.Event{Thread: first, UUID: "GPU-0"}
		ready := event
		ready.Ready = true
		assert.Equal(t, []nvmlproto.Event{ready}, l.reported(nil))
		for range 3000 {
			f.events <- nvml.Event{Type: nvml.EventXID, Data: 94, GI: nvml.NoInstance}
			f.events <- nvml.Event{Type: nvml.EventXID, Data: 94, GI: 7}
		}
		f.events <- nvml.Event{Type: 1 << 20, Data: 1}
		f.events <- nvml.Event{Type: nvml.EventMIG, GI: nvml.NoInstance}
		time.Sleep(2 * time.Second)
		var burst nvmlproto.Event
		for _, e := range l.reported(nil) {
			burst.MIG = burst.MIG || e.MIG
			for _, x := range e.XID {
				if len(burst.XID) == 0 || !assert.ObjectsAreEqual(burst.XID[0].GI, x.GI) && len(burst.XID) == 1 {
					burst.XID = append(burst.XID, x)
					continue
				}
				for i := range burst.XID {
					if assert.ObjectsAreEqual(burst.XID[i].GI, x.GI) {
						burst.XID[i].N += x.N
					}
				}
			}
		}
		assert.Equal(t, nvmlproto.Event{MIG: true, XID: []nvmlproto.XID{{Code: 94, N: 3000}, {Code: 94, GI: &gi, N: 3000}}}, burst)

		l.Ask(&nvmlproto.Request{})
		time.Sleep(2 * time.Second)
		waits := f.called("wait")
		time.Sleep(time.Minute)
		assert.Equal(t, waits, f.called("wait"), "a board that is not wanted has no events waited for")
	})
}

func TestEventsThatFail(t *testing.T) {
	for _, test := range []struct {
		name  string
		call  string
		r     nvml.Return
		types uint64
		tries int // of registering within a minute
		want  int
	}{
		{"lost", "wait", nvmlproto.GPUIsLost, nvml.EventXID, 1, nvmlproto.GPUIsLost},
		{"not found", "wait", nvmlproto.GPUNotFound, nvml.EventXID, 1, nvmlproto.GPUNotFound},
		{"not supported", "register", nvml.NotSupported, nvml.EventXID, 1, nvmlproto.NotSupported},
		{"no such function", "types", nvml.FunctionNotFound, nvml.EventXID, 0, nvmlproto.NotSupported},
		{"no such type", "", nvml.Success, 0x2, 0, nvmlproto.NotSupported},
		{"unknown", "wait", nvml.Unknown, nvml.EventXID, 6, nvmlproto.Unknown}, // after 1, 3, 7, 15 and 31 s
	} {
		t.Run(test.name, func(t *testing.T) {
			inLab(t, &fake{boards: 1, types: test.types}, func(l *lab) {
				l.fake.fault(test.call, fault{returns: test.r})
				for range 4 {
					l.Ask(&nvmlproto.Request{Boards: l.all(), Groups: []nvmlproto.Group{nvmlproto.GroupXID}})
					time.Sleep(15 * time.Second)
				}
				events := l.reported(nil)
				assert.Equal(t, test.want, events[len(events)-1].Return)
				assert.Equal(t, test.tries, l.fake.called("register"))
			})
		})
	}
}
