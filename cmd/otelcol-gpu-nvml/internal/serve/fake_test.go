// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// fake is a library with boards "0000:0N:00.0". Every reading is 1.
type fake struct {
	mu        sync.Mutex
	boards    int
	gpm       bool
	mig       *nvmlproto.MIG
	instances []Instance
	faults    map[string]fault // by thread and call, or by call
	events    map[Device]chan Event
	calls     []string // thread and call
	samples   int
	// during is called during a read of the board.
	during func()
}

// fault is what a call does instead.
type fault struct {
	hang    chan struct{} // until it is closed
	returns int
}

func (f *fake) Caller(a Announce) Caller {
	c := &fakeCaller{fake: f, announce: a}
	if announcer, ok := a.(*announcer); ok {
		c.thread = announcer.thread
	}
	return c
}

type fakeCaller struct {
	*fake
	announce Announce
	thread   string
}

func (c *fakeCaller) call(name string) int {
	begun := time.Now()
	if c.announce != nil {
		c.announce.Begin(name)
	}
	c.mu.Lock()
	c.calls = append(c.calls, c.thread+" "+name)
	does, ok := c.faults[c.thread+" "+name]
	if !ok {
		does = c.faults[name]
	}
	c.mu.Unlock()
	if does.hang != nil {
		<-does.hang
	}
	if c.announce != nil {
		c.announce.End(name, does.returns, time.Since(begun))
	}
	return does.returns
}

func (c *fakeCaller) Init() int                     { return c.call("init") }
func (c *fakeCaller) Shutdown() int                 { return c.call("shutdown") }
func (c *fakeCaller) ErrorString(r int) string      { return "error " + strconv.Itoa(r) }
func (c *fakeCaller) Driver() (string, int)         { return "550.54", nvmlproto.Success }
func (c *fakeCaller) NVML() (string, int)           { return "12.550", nvmlproto.Success }
func (c *fakeCaller) Count() (int, int)             { return c.boards, nvmlproto.Success }
func (c *fakeCaller) ByIndex(i int) (Device, int)   { return Device(i + 1), c.call("handle") }
func (c *fakeCaller) MIG(Device) *nvmlproto.MIG     { return c.mig }
func (c *fakeCaller) Forget(Device)                 { c.call("forget") }
func (c *fakeCaller) GPMSupport(Device) (bool, int) { return c.gpm, c.call("support") }

func (c *fakeCaller) ByPCI(address string) (Device, int) {
	n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(address, "0000:0"), ":00.0"))
	return Device(n + 1), c.call("handle")
}

func (c *fakeCaller) Identify(d Device, b *nvmlproto.Board) int {
	b.UUID = "GPU-" + strconv.Itoa(int(d)-1)
	return c.call("identify")
}

func (c *fakeCaller) Instances(Device) ([]Instance, []nvmlproto.Refused, int) {
	r := c.call("instances")
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.instances), nil, r
}

func (c *fakeCaller) Read(_ Device, readings []nvmlproto.Reading) ([]nvmlproto.Value, []nvmlproto.Refused) {
	var values []nvmlproto.Value
	for _, reading := range readings {
		r := c.call(reading.Name)
		values = append(values, nvmlproto.Value{Name: reading.Name, V: 1, Return: r})
	}
	if c.during != nil {
		c.during()
	}
	return values, nil
}

func (c *fakeCaller) Processes(Device) (*nvmlproto.Processes, []nvmlproto.Refused) {
	c.call("processes")
	return &nvmlproto.Processes{List: []nvmlproto.Process{{PID: 1}}}, nil
}

func (c *fakeCaller) NewSample() (Sample, int) {
	c.mu.Lock()
	c.samples++
	c.mu.Unlock()
	return 1, c.call("new sample")
}

func (c *fakeCaller) FreeSample(Sample) {
	c.mu.Lock()
	c.samples--
	c.mu.Unlock()
}
func (c *fakeCaller) TakeSample(Device, Sample) int { return c.call("sample") }
func (c *fakeCaller) TakeInstanceSample(_ Device, gi int, _ Sample) int {
	return c.call("sample of " + strconv.Itoa(gi))
}

func (c *fakeCaller) Metrics(_, _ Sample, readings []nvmlproto.Reading) ([]nvmlproto.Value, int) {
	r := c.call("metrics")
	var values []nvmlproto.Value
	for _, reading := range readings {
		values = append(values, nvmlproto.Value{Name: reading.Name, V: 1})
	}
	return values, r
}

func (c *fakeCaller) NewSet() (Set, int)               { return 1, nvmlproto.Success }
func (c *fakeCaller) FreeSet(Set)                      {}
func (c *fakeCaller) EventTypes(Device) (uint64, int)  { return eventXID | eventMIG, c.call("types") }
func (c *fakeCaller) Register(Device, uint64, Set) int { return c.call("register") }
func (c *fakeCaller) Wait(_ Set, timeout time.Duration) (Event, int) {
	if r := c.call("wait"); r != nvmlproto.Success {
		return Event{}, r
	}
	select {
	case e := <-c.events[1]:
		return e, nvmlproto.Success
	default:
	}
	select {
	case e := <-c.events[1]:
		return e, nvmlproto.Success
	case <-time.After(timeout):
		return Event{}, nvmlproto.Timeout
	}
}

func (f *fake) fault(call string, does fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.faults == nil {
		f.faults = map[string]fault{}
	}
	f.faults[call] = does
}

// called is how often a call was made.
func (f *fake) called(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if c == call || strings.HasSuffix(c, " "+call) {
			n++
		}
	}
	return n
}

// lab is a server of a fake library, and what it has written.
type lab struct {
	t *testing.T
	*Server
	fake   *fake
	mu     sync.Mutex
	frames []nvmlproto.Frame
	id     uint64
}

func (l *lab) Write(frames []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for in := bytes.NewReader(frames); in.Len() > 0; {
		var frame nvmlproto.Frame
		_, err := nvmlproto.Read(in, &frame, nil)
		require.NoError(l.t, err)
		l.frames = append(l.frames, frame)
	}
	return len(frames), nil
}

// inLab runs a test with a clock that moves when all wait.
func inLab(t *testing.T, f *fake, test func(l *lab)) {
	synctest.Test(t, func(t *testing.T) {
		l := &lab{t: t, fake: f}
		l.Server = New(func() (Library, string, []string) { return f, "/lib/libnvidia-ml.so.1", nil }, l, "0.1.0", func(error) {})
		test(l)
		l.Stop()
	})
}

// all are the addresses of the boards.
func (l *lab) all() []string {
	var addresses []string
	for i := range l.fake.boards {
		addresses = append(addresses, "0000:0"+strconv.Itoa(i)+":00.0")
	}
	return addresses
}

// ask asks for all boards, waits for as long as told, and returns the frames that were
// written since.
func (l *lab) ask(wait time.Duration, groups ...nvmlproto.Group) (*nvmlproto.System, map[string]*nvmlproto.Board) {
	l.id++
	l.take()
	l.Ask(&nvmlproto.Request{ID: l.id, Boards: l.all(), Groups: groups, WindowMillis: 30_000})
	if wait > 0 {
		time.Sleep(wait)
	}
	synctest.Wait()
	var system *nvmlproto.System
	boards := map[string]*nvmlproto.Board{}
	for _, f := range l.take() {
		switch {
		case f.System != nil:
			system = f.System
		case f.Board != nil && f.Board.ID == l.id:
			boards[f.Board.Thread] = f.Board
		}
	}
	return system, boards
}

func (l *lab) take() []nvmlproto.Frame {
	l.mu.Lock()
	defer l.mu.Unlock()
	frames := l.frames
	l.frames = nil
	return frames
}

// names are the names of the values that are there.
func names(values []nvmlproto.Value) []string {
	var list []string
	for _, v := range values {
		if v.Return == nvmlproto.Success {
			list = append(list, v.Name)
		}
	}
	return list
}
