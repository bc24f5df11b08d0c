// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/host"
)

var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

const a, b = "0000:17:00.0", "0000:65:00.0"

func hosting(boards ...host.Board) *host.Snapshot {
	for i := range boards {
		if boards[i].Driver == "" {
			boards[i].Driver = "nvidia"
		}
	}
	return &host.Snapshot{Boards: boards, Driver: "550", Hardware: true, Device: true}
}

func frame(thread string, busy nvmlproto.Number) nvmlproto.Board {
	return nvmlproto.Board{Thread: thread, Values: []nvmlproto.Value{{Name: "utilization.gpu", V: busy}, {Name: "memory.used"}}}
}

func TestPlan(t *testing.T) {
	for name, c := range map[string]struct {
		host  *host.Snapshot
		stuck []string
		wake  bool
		want  Plan
	}{
		"all":               {host: hosting(host.Board{PCI: a}, host.Board{PCI: b}), want: Plan{Read: []string{a, b}}},
		"one is stuck":      {host: hosting(host.Board{PCI: a}, host.Board{PCI: b}), stuck: []string{a}, want: Plan{Read: []string{b}}},
		"one is suspended":  {host: hosting(host.Board{PCI: a, Managed: true, Suspended: true}, host.Board{PCI: b}), want: Plan{Read: []string{b}, Suspended: []string{a}}},
		"wake":              {host: hosting(host.Board{PCI: a, Managed: true, Suspended: true}), wake: true, want: Plan{Read: []string{a}}},
		"no PCI functions":  {host: hosting(), want: Plan{ByIndex: true}},
		"another driver":    {host: hosting(host.Board{PCI: a, Driver: "nouveau"}, host.Board{PCI: b}), want: Plan{Read: []string{b}}},
		"no driver, nor it": {host: &host.Snapshot{Boards: []host.Board{{PCI: a}}, Hardware: true}, want: Plan{}},
	} {
		t.Run(name, func(t *testing.T) {
			boards := Boards{Wake: c.wake}
			got := boards.Plan(noon, c.host, c.stuck)
			got.Managed = nil
			assert.Equal(t, c.want, got)
		})
	}
	many := make([]host.Board, nvmlproto.MaxBoards+2)
	for i := range many {
		many[i].PCI = string(rune('A' + i))
	}
	var boards Boards
	assert.Equal(t, 2, boards.Plan(noon, hosting(many...), nil).Beyond)
}

// TestRest: an idle board that the kernel may suspend is left alone for two minutes. If it is not
// suspended, it is read for an hour, and then for longer and longer.
func TestRest(t *testing.T) {
	h := hosting(host.Board{PCI: a, Managed: true}, host.Board{PCI: b})
	var boards Boards
	now := noon
	scrape := func(busy nvmlproto.Number) Plan {
		p := boards.Plan(now, h, nil)
		var answers []nvmlproto.Board
		for _, thread := range p.Read {
			answers = append(answers, frame(thread, busy))
		}
		boards.Answered(now, &p, answers)
		now = now.Add(15 * time.Second)
		return p
	}
	for _, busy := range []nvmlproto.Number{0, 0, 0, 3, 0, 0, 0, 0} {
		assert.Equal(t, []string{a, b}, scrape(busy).Read)
	}
	rests := func() {
		for range 7 {
			p := scrape(0)
			assert.Equal(t, []string{a}, p.Resting)
			assert.Equal(t, []string{b}, p.Read, "the kernel never suspends it: nothing is gained")
		}
	}
	rests()
	for _, hours := range []int{1, 2, 4, 8, 16, 24, 24} {
		for range hours*60*4 + 1 {
			assert.Equal(t, []string{a, b}, scrape(0).Read, "it has not been suspended")
		}
		rests()
	}
	assert.Equal(t, []string{a, b}, scrape(0).Read)

	// Once it has been suspended, and was used since, it is left alone as soon as it is idle.
	h.Boards[0].Suspended = true
	assert.Equal(t, []string{a}, scrape(0).Suspended)
	h.Boards[0].Suspended = false
	for _, busy := range []nvmlproto.Number{3, 0, 0, 0, 0} {
		assert.Equal(t, []string{a, b}, scrape(busy).Read)
	}
	rests()
}

// TestInUse: a board that something may use is never left alone, whatever its utilization is.
func TestInUse(t *testing.T) {
	number := func(v int) *int { return &v }
	process := &nvmlproto.Processes{List: []nvmlproto.Process{{PID: 1}}}
	for name, c := range map[string]struct {
		used, reserved *int // MiB
		processes      *nvmlproto.Processes
		rests          bool
	}{
		"nothing in use":                      {number(0), nil, nil, true},
		"what the driver takes":               {number(60), number(600), nil, true},
		"a context":                           {number(120), number(600), nil, false},
		"a model without a request":           {number(70 << 10), number(600), nil, false},
		"what the driver reserves, not apart": {number(700), nil, nil, true},
		"a model, and what is reserved":       {number(8 << 10), nil, nil, false},
		"a process without memory":            {number(0), number(600), process, false},
		"processes that were left out":        {number(0), nil, &nvmlproto.Processes{Left: 1}, false},
		"no process":                          {number(0), nil, &nvmlproto.Processes{}, true},
		"no memory figure (GB10)":             {nil, nil, nil, false},
		"no memory figure, a process":         {nil, nil, process, false},
		"no memory figure, and no process":    {nil, nil, &nvmlproto.Processes{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := hosting(host.Board{PCI: a, Managed: true})
			var boards Boards
			read := 0
			for i := range 20 {
				now := noon.Add(time.Duration(i) * 15 * time.Second)
				p := boards.Plan(now, h, nil)
				var answers []nvmlproto.Board
				for _, thread := range p.Read {
					answer := nvmlproto.Board{Thread: thread, Processes: c.processes, Values: []nvmlproto.Value{{Name: "utilization.gpu"}}}
					for name, mib := range map[string]*int{"memory.used": c.used, "memory.reserved": c.reserved} {
						if mib != nil {
							answer.Values = append(answer.Values, nvmlproto.Value{Name: name, V: nvmlproto.Number(*mib << 20)})
						}
					}
					answers = append(answers, answer)
					read++
				}
				boards.Answered(now, &p, answers)
			}
			assert.Equal(t, c.rests, read < 20, "read in %d of 20 scrapes", read)
		})
	}
}

// TestLost: a board that has left its bus is looked for by new helpers.
func TestLost(t *testing.T) {
	h := hosting(host.Board{PCI: a}, host.Board{PCI: b})
	var boards Boards
	boards.Started(h)
	now := noon
	lost := func() (found []string, p Plan) {
		p = boards.Plan(now, h, nil)
		var answers []nvmlproto.Board
		for _, thread := range p.Read {
			x := frame(thread, 1)
			x.Lost = thread == a
			answers = append(answers, x)
		}
		return boards.Answered(now, &p, answers), p
	}
	found, _ := lost()
	assert.Equal(t, []string{a}, found)
	found, p := lost()
	assert.Empty(t, found)
	assert.Equal(t, []string{b}, p.Read, "this helper does not find it any more")
	for _, after := range []time.Duration{5 * time.Minute, time.Hour, time.Hour} {
		now = now.Add(after - time.Second)
		assert.Empty(t, boards.Replace(now, h))
		now = now.Add(time.Second)
		assert.Equal(t, ReasonLost, boards.Replace(now, h))
		boards.Started(h)
		found, p = lost()
		assert.Equal(t, []string{a, b}, p.Read)
		assert.Empty(t, found, "it was known")
		assert.Equal(t, 1, boards.Lost())
	}
	assert.Empty(t, boards.Replace(now, h))
	boards.Started(h)
	p = boards.Plan(now, h, nil)
	boards.Answered(now, &p, []nvmlproto.Board{frame(a, 1), frame(b, 1)})
	assert.Zero(t, boards.Lost(), "it is back")
}

func TestReplace(t *testing.T) {
	was := hosting(host.Board{PCI: a})
	other := hosting(host.Board{PCI: a})
	other.Driver = "575"
	gone := hosting(host.Board{PCI: a})
	gone.Driver = ""
	for name, c := range map[string]struct {
		host *host.Snapshot
		want string
	}{
		"the same":             {hosting(host.Board{PCI: a}), ""},
		"another driver":       {other, ReasonDriver},
		"no driver":            {gone, ReasonDriver},
		"a board more":         {hosting(host.Board{PCI: a}, host.Board{PCI: b}), ReasonBoards},
		"a board less":         {hosting(), ReasonBoards},
		"one of another owner": {hosting(host.Board{PCI: a}, host.Board{PCI: b, Driver: "nouveau"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var boards Boards
			boards.Started(was)
			assert.Equal(t, c.want, boards.Replace(noon, c.host))
		})
	}
}

// TestCrashed: a board that crashes each helper does not cost its neighbours their data for
// ever.
func TestCrashed(t *testing.T) {
	h := hosting(host.Board{PCI: a}, host.Board{PCI: b})
	var boards Boards
	assert.Empty(t, boards.Crashed(noon, []string{a, b}))
	assert.Empty(t, boards.Crashed(noon, []string{a}))
	assert.Equal(t, a, boards.Crashed(noon, []string{a, b}))
	assert.Equal(t, []string{b}, boards.Plan(noon, h, nil).Read)
	assert.Equal(t, []string{a, b}, boards.Plan(noon.Add(10*time.Minute), h, nil).Read)

	for range 5 {
		assert.Empty(t, boards.Crashed(noon, []string{a, b}), "it is not known which")
		assert.Empty(t, boards.Crashed(noon, nil))
	}
	boards.Answered(noon, &Plan{}, nil)
	assert.Empty(t, boards.Crashed(noon, []string{a}), "not in a row")
}

func TestRelease(t *testing.T) {
	type step struct {
		after         time.Duration
		file, label   bool
		mode, pending int
		released      bool
	}
	for name, steps := range map[string][]step{
		"file, for long": {{file: true, released: true}, {after: time.Hour, file: true, released: true}, {after: time.Second}},
		"label": {
			{label: true, released: true}, {after: MaxRelease - time.Second, label: true, released: true},
			{after: time.Second, label: true}, {after: time.Hour, label: true}, {}, {label: true, released: true},
		},
		"mode": {
			{pending: 1, released: true}, {after: MaxRelease - time.Second, pending: 1, released: true}, {after: time.Second, pending: 1},
			{mode: 1, pending: 1}, {mode: 1, released: true},
		},
		"a mode that a label ends": {{pending: 1, label: true, released: true}, {after: time.Second, pending: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var r Release
			now := noon
			for i, s := range steps {
				now = now.Add(s.after)
				r.Answered(now, []nvmlproto.Board{{Thread: a, MIG: &nvmlproto.MIG{Current: s.mode, Pending: s.pending}}, {Thread: b}})
				assert.Equal(t, s.released, r.Look(now, s.file, s.label) != "", "step %d", i)
			}
		})
	}
}
