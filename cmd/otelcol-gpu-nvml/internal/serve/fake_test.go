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

	"github.com/otelcol-gpu/otelcol-gpu/cmd/otelcol-gpu-nvml/internal/nvml"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// fake is a library with boards "0000:0N:00.0". Every reading is 1.
type fake struct {
	mu        sync.Mutex
	boards    int
	gpm       bool
	mig       *nvmlproto.MIG
	instances []nvml.Instance
	faults    map[string]fault // by thread and call, or by call
	events    chan nvml.Event
	types     uint64   // of events
	calls     []string // thread and call
	samples   int
	during    func() // called by each Read
}

// fault is what a call does instead.
type fault struct {
	hang    chan struct{} // until it is closed
	returns nvml.Return
}

func (f *fake) Caller(a nvml.Announce) Caller {
	c := &fakeCaller{fake: f, announce: a}
	if announcer, ok := a.(*announcer); ok {
		c.thread = announcer.thread
	}
	return c
}

type fakeCaller struct {
	*fake
	announce nvml.Announce
	thread   string
}

func (c *fakeCaller) call(name string) nvml.Return {
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
		c.announce.End(name, does.returns, float64(time.Since(begun).Microseconds()))
	}
	return does.returns
}

func (c *fakeCaller) Init() nvml.Return                { return c.call("init") }
func (c *fakeCaller) Shutdown() nvml.Return            { return c.call("shutdown") }
func (c *fakeCaller) ErrorString(r nvml.Return) string { return "error " + strconv.Itoa(int(r)) }
func (c *fakeCaller) Driver() (string, nvml.Return)    { return "550.54", nvml.Success }
func (c *fakeCaller) NVML() (string, nvml.Return)      { return "12.550", nvml.Success }
func (c *fakeCaller) Count() (int, nvml.Return)        { return c.boards, nvml.Success }
func (c *fakeCaller) Forget(nvml.Device)               { c.call("forget") }

func (c *fakeCaller) ByIndex(i int) (nvml.Device, nvml.Return) {
	return nvml.Device(i + 1), c.call("handle")
}

func (c *fakeCaller) ByPCI(address string) (nvml.Device, nvml.Return) {
	n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(address, "0000:0"), ":00.0"))
	return nvml.Device(n + 1), c.call("handle")
}

func (c *fakeCaller) Identify(d nvml.Device, b *nvmlproto.Board) nvml.Return {
	b.UUID = "GPU-" + strconv.Itoa(int(d)-1)
	return c.call("identify")
}

func (c *fakeCaller) MIG(nvml.Device) (*nvmlproto.MIG, nvml.Return) { return c.mig, c.call("mig") }

func (c *fakeCaller) Instances(nvml.Device) ([]nvml.Instance, []nvmlproto.Refused, nvml.Return) {
	r := c.call("instances")
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.instances), nil, r
}

func (c *fakeCaller) Read(_ nvml.Device, readings []nvmlproto.Reading) ([]nvmlproto.Value, []nvmlproto.Refused) {
	var values []nvmlproto.Value
	for _, reading := range readings {
		r := c.call(reading.Name)
		values = append(values, nvmlproto.Value{Name: reading.Name, V: 1, Return: int(r)})
	}
	if c.during != nil {
		c.during()
	}
	return values, nil
}

func (c *fakeCaller) Processes(nvml.Device) (*nvmlproto.Processes, []nvmlproto.Refused, nvml.Return) {
	return &nvmlproto.Processes{List: []nvmlproto.Process{{PID: 1}}}, nil, c.call("processes")
}

func (c *fakeCaller) GPMSupport(nvml.Device) (bool, nvml.Return) {
	return c.gpm, c.call("support")
}

func (c *fakeCaller) SampleAlloc() (nvml.Sample, nvml.Return) {
	c.mu.Lock()
	c.samples++
	c.mu.Unlock()
	return 1, c.call("sample alloc")
}

func (c *fakeCaller) SampleFree(nvml.Sample) nvml.Return {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples--
	return nvml.Success
}

func (c *fakeCaller) SampleGet(nvml.Device, nvml.Sample) nvml.Return { return c.call("sample") }

func (c *fakeCaller) MigSampleGet(_ nvml.Device, gi int, _ nvml.Sample) nvml.Return {
	return c.call("sample of " + strconv.Itoa(gi))
}

func (c *fakeCaller) Metrics(_, _ nvml.Sample, readings []nvmlproto.Reading) ([]nvmlproto.Value, []nvmlproto.Refused, nvml.Return) {
	r := c.call("metrics")
	var values []nvmlproto.Value
	for _, reading := range readings {
		values = append(values, nvmlproto.Value{Name: reading.Name, V: 1})
	}
	return values, nil, r
}

func (c *fakeCaller) EventSet() (nvml.Set, nvml.Return) { return 1, nvml.Success }

func (c *fakeCaller) FreeSet(nvml.Set) nvml.Return { return c.call("free set") }

func (c *fakeCaller) EventTypes(nvml.Device) (uint64, nvml.Return) { return c.types, c.call("types") }

func (c *fakeCaller) Register(nvml.Device, uint64, nvml.Set) nvml.Return { return c.call("register") }

func (c *fakeCaller) Wait(_ nvml.Set, milliseconds uint32) (nvml.Event, nvml.Return) {
	if r := c.call("wait"); r != nvml.Success {
		return nvml.Event{}, r
	}
	select {
	case e := <-c.events:
		return e, nvml.Success
	default:
	}
	select {
	case e := <-c.events:
		return e, nvml.Success
	case <-time.After(time.Duration(milliseconds) * time.Millisecond):
		return nvml.Event{}, nvml.Timeout
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
		f.events = make(chan nvml.Event, 10_000) // of the bubble
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

// ask asks for all boards, waits for that long, and returns the frames that were
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
