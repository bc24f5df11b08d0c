// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/correctness"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/gobench"
)

func TestMedian(t *testing.T) {
	assert.Equal(t, 2.0, frame.Median([]float64{3, 1, 2}))
	assert.Equal(t, 2.5, frame.Median([]float64{4, 1, 2, 3}))
	assert.True(t, math.IsNaN(frame.Median(nil)))
}

// A turn that lacks one of the two has no ratio.
func TestRatios(t *testing.T) {
	assert.Equal(t, []float64{2, 3}, frame.Ratios([]float64{4, math.NaN(), 9, 1}, []float64{2, 5, 3, 0}))
}

// Made is an entry with rows that depend on the turn: a disturbed second turn is
// twice as slow for all, and the third of one row fails.
func made() (frame.Entry, *[]string) {
	var order []string
	turns := map[string]int{}
	at := func(name string, base float64) frame.Row {
		return frame.Row{Name: name, Measure: func(context.Context, *frame.World) (frame.Figures, error) {
			order = append(order, name)
			turns[name]++
			switch {
			case turns[name] == 2:
				return frame.Figures{"cpu": 2 * base, "rss": 100}, nil
			case turns[name] == 3 && name == "ours":
				return nil, errors.New("it ended\nwith a long log")
			}
			return frame.Figures{"cpu": base, "rss": 100}, nil
		}}
	}
	return frame.Entry{
		Name: "made", Title: "Made up", Text: "Of a test.",
		Columns: []frame.Column{{Key: "cpu", Title: "CPU, us", Decimals: 1, Ratio: true, Goal: "3"}, {Key: "rss", Title: "resident, MiB"}, {Key: "none", Title: "nothing"}},
		Rows:    func(*frame.World) []frame.Row { return []frame.Row{at("stock", 4), at("ours", 1)} },
	}, &order
}

// Rows take turns, none is always the first, ratios are of one turn, and a row
// that fails costs no other and is reported.
func TestRunAndRender(t *testing.T) {
	e, order := made()
	got, err := e.Run(t.Context(), &frame.World{Turns: 3})
	require.NoError(t, err)
	assert.Equal(t, []string{"stock", "ours", "ours", "stock", "stock", "ours"}, *order)
	got.Command = "make bench"

	before := entries
	t.Cleanup(func() { entries = before })
	entries = []*frame.Entry{&e}
	path := filepath.Join(t.TempDir(), "performance.json")
	require.NoError(t, save(path, map[string]frame.Result{"made": got}))
	read, err := open(path)
	require.NoError(t, err)
	beforeGoals := goals
	t.Cleanup(func() { goals = beforeGoals })
	goals = []goal{
		{what: "cheap", unit: "us", place: place{"made", "ours", "cpu"}, limit: 3, cause: "Never told."},
		{what: "dear", unit: "us", place: place{"made", "stock", "cpu"}, limit: 3.2, peer: "ours", cause: "It is slow."},
		{what: "close", unit: "us", place: place{"made", "stock", "cpu"}, limit: 3.98, cause: "It is slow."},
	}
	text := string(full(read))
	for _, line := range []string{
		"## Made up", "Of a test.", "make bench",
		"| row | CPU, us (goal: 3) | resident, MiB | nothing |",
		"| stock | 4.0 (4.0 to 8.0) | 100 |  |",
		"| ours | 1.5 (1.0 to 2.0) **×0.25** | 100 |  |",
		"ours failed: turn 3: it ended.",
	} {
		assert.Contains(t, text, line)
	}

	short["made"] = "In short."
	t.Cleanup(func() { delete(short, "made") })
	report, err := page(medians(read), nil)
	require.NoError(t, err)
	text = string(report)
	for _, line := range []string{
		"## Made up", "In short.",
		"| stock | 4.0 | 100 |  |",
		"| ours | 1.5 **×0.38** | 100 |  |", // of the medians
		"ours failed: turn 3: it ended.",
		"| [cheap](#made-up) | at most 3 us | 1.50 | met |",
		"| [dear](#made-up) | at most 3.2 us | 4 | **missed by 25 %** |",
		"| [close](#made-up) | at most 3.98 us | 4 | **missed by 0.50 %** |",
		"- **dear**: It is slow. ours in the same run: 1.50.\n- **close**: It is slow.\n",
	} {
		assert.Contains(t, text, line)
	}
	assert.NotContains(t, text, "Never told.")
}

// Every entry has its lines in the page, which stay short.
func TestPageIsShort(t *testing.T) {
	for _, e := range entries {
		assert.NotEmpty(t, short[e.Name], e.Name)
	}
	root, results := committed(t)
	changes, err := changes(root, results)
	require.NoError(t, err)
	text, err := page(results, changes)
	require.NoError(t, err)
	assert.LessOrEqual(t, strings.Count(string(text), "\n"), 280)
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "performance.json")
	none, err := open(path)
	require.NoError(t, err)
	assert.Empty(t, none)
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err = open(path)
	assert.ErrorContains(t, err, "remove it to start again")
}

func TestChoose(t *testing.T) {
	all, err := choose("")
	require.NoError(t, err)
	assert.Equal(t, entries, all)
	_, err = choose("nobody")
	assert.ErrorContains(t, err, `there is no "nobody"`)
}

func TestReadBenchmarks(t *testing.T) {
	got, err := gobench.ReadBenchmarks([]byte("goos: linux\npkg: github.com/otelcol-gpu/otelcol-gpu/a\nBenchmarkA/x=1-2 \t 10\t 12 ns/op\t 3 allocs/op\nBenchmarkA/x=1-2 \t 10\t 14 ns/op\t 3 allocs/op\nBenchmarkLooksLike one\nPASS\n"))
	require.NoError(t, err)
	assert.Equal(t, []frame.Named{{Row: "A/x=1", Figures: frame.Figures{"ns/op": 12, "allocs/op": 3}}, {Row: "A/x=1", Figures: frame.Figures{"ns/op": 14, "allocs/op": 3}}}, got)
	_, err = gobench.ReadBenchmarks([]byte("PASS\n"))
	assert.Error(t, err)
}

// Two packages may have a benchmark of one name, and a name may end in a number
// without there being more than one core.
func TestReadBenchmarksOfPackages(t *testing.T) {
	got, err := gobench.ReadBenchmarks([]byte("pkg: github.com/otelcol-gpu/otelcol-gpu/a\nBenchmarkMemory 1 5 B/pod\npkg: github.com/otelcol-gpu/otelcol-gpu/b/c\nBenchmarkMemory-9 1 6 B/device\n"))
	require.NoError(t, err)
	assert.Equal(t, []frame.Named{{Row: "a: Memory", Figures: frame.Figures{"B/pod": 5}}, {Row: "b/c: Memory-9", Figures: frame.Figures{"B/device": 6}}}, got)
}

// A table for each package and set of units; each run of a benchmark is a value; a
// table with many units lies on its side.
func TestGoBenchmarksShown(t *testing.T) {
	e := frame.Entry{Name: "go-made", Title: "Made", All: func(context.Context, *frame.World) ([]frame.Named, error) {
		return []frame.Named{
			{Row: "a: One", Figures: frame.Figures{"ns/op": 10, "allocs/op": 2, "x": 0.1234}},
			{Row: "a: One", Figures: frame.Figures{"ns/op": 30, "allocs/op": 2, "x": 0.1234}},
			{Row: "a: Two", Figures: frame.Figures{"ns/op": 5, "allocs/op": 1, "x": 1234.5}},
			{Row: "b: Three", Figures: frame.Figures{"B/x": 1, "ns/op": 1, "u1": 1, "u2": 1, "u3": 1, "u4": 1, "u5": 1, "u6": 1, "u7": 1}},
		}, nil
	}, Besides: map[string]string{"a: Two": "a: One"}}
	got, err := e.Run(t.Context(), &frame.World{Turns: 1})
	require.NoError(t, err)
	two := tables(&e, &got)
	require.Len(t, two, 2)
	assert.Equal(t, table{"a", [][]string{
		{"row", "ns/op", "x", "allocs/op"},
		{"One", "20 (10 to 30)", "0.123", "2"},
		{"Two", "5 **×0.50**", "1234 **×10004.05**", "1 **×0.50**"},
	}}, two[0])
	assert.Equal(t, "b", two[1].caption)
	assert.Equal(t, [][]string{{"row", "Three"}, {"ns/op", "1"}, {"B/x", "1"}}, two[1].cells[:3])
}

// A column is in the largest unit that leaves no row below one, and a benchmark of
// memory shows nothing of its own time.
func TestReadable(t *testing.T) {
	e := frame.Entry{Name: "go-made", Title: "Made", All: func(context.Context, *frame.World) ([]frame.Named, error) {
		return []frame.Named{
			{Row: "A", Figures: frame.Figures{"ns/op": 1.5e6, "B/op": 900}}, {Row: "B", Figures: frame.Figures{"ns/op": 2e9, "B/op": 1 << 30}},
			{Row: "Memory/pods=1", Figures: frame.Figures{"ns/op": 1.5e6, "B/op": 900, "B/pod": 1536}},
		}, nil
	}}
	got, err := e.Run(t.Context(), &frame.World{Turns: 1})
	require.NoError(t, err)
	assert.Equal(t, []table{
		{"", [][]string{{"row", "ms/op", "B/op"}, {"A", "1.50", "900"}, {"B", "2000", "1073741824"}}},
		{"", [][]string{{"row", "KiB/pod"}, {"Memory/pods=1", "1.50"}}},
	}, tables(&e, &got))
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		value    float64
		decimals int
		want     string
	}{{1234.4, -1, "1234"}, {99.96, -1, "100"}, {12.34, -1, "12.3"}, {1.5, -1, "1.50"}, {8, -1, "8"}, {0.012345, -1, "0.0123"}, {0, -1, "0"}, {-0.001, 1, "0.0"}, {2.25, 1, "2.2"}} {
		assert.Equal(t, c.want, number(c.value, c.decimals), c.value)
	}
}

// A row that failed in all turns is not an unmeasured row.
func TestFailedGoal(t *testing.T) {
	e, _ := made()
	before, beforeGoals := entries, goals
	t.Cleanup(func() { entries, goals = before, beforeGoals })
	entries = []*frame.Entry{&e}
	goals = []goal{{what: "cheap", unit: "us", place: place{"made", "ours", "cpu"}, limit: 3, cause: "Never told."}}
	failed := map[string]frame.Result{"made": {Rows: []frame.RowResult{{Name: "ours", Figures: map[string][]*float64{"cpu": {nil}}, Failed: []string{"it ended"}}}}}
	report, err := page(failed, nil)
	require.NoError(t, err)
	assert.Contains(t, string(report), "| [cheap](#made-up) | at most 3 us | failed | **missed**: it could not be measured, as its section shows |")
	text, err := fill("<!-- bench: made; ours; cpu -->3<!-- /bench -->", failed)
	require.NoError(t, err)
	assert.Equal(t, "<!-- bench: made; ours; cpu -->"+unmeasured+"<!-- /bench -->", text)
}

// What a command started ends with it.
func TestCommandEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd := frame.Command(ctx, "sh", "-c", "sleep 600 & echo; wait")
	out, err := cmd.StdoutPipe() // the child has it too, and keeps it open
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err)
	cancel()
	_, err = io.ReadAll(out)
	assert.NoError(t, err)
	assert.Error(t, cmd.Wait())
}

// This process is measured, and one that is not there is an error.
func TestWatch(t *testing.T) {
	w, err := frame.Watch(t.Context(), os.Getpid(), 1200*time.Millisecond)
	require.NoError(t, err)
	assert.Positive(t, w.RSS)
	assert.Positive(t, w.Anon)
	assert.LessOrEqual(t, w.Anon, w.RSS)
	assert.GreaterOrEqual(t, w.Took, 1200*time.Millisecond)
	_, err = frame.Watch(t.Context(), math.MaxInt32, time.Millisecond)
	assert.Error(t, err)
}

// Every entry can be chosen and shown: names and columns are there once.
func TestEntries(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range entries {
		assert.False(t, seen[e.Name], e.Name)
		seen[e.Name] = true
		assert.NotEmpty(t, e.Title)
		assert.NotEqual(t, e.Rows == nil, e.All == nil, e.Name)
		keys := map[string]bool{}
		for _, c := range e.Columns {
			assert.False(t, keys[c.Key], "%s: %s", e.Name, c.Key)
			keys[c.Key] = true
			assert.False(t, strings.Contains(c.Title, "|"))
		}
		if e.Rows != nil {
			names := map[string]bool{}
			for _, r := range e.Rows(&frame.World{}) {
				assert.False(t, names[r.Name], r.Name)
				names[r.Name] = true
				assert.True(t, r.Beside == "" || names[r.Beside], "%s stands beside %s, which comes later or not at all", r.Name, r.Beside)
			}
		}
	}
}

// Rows that run together all run at the same time, and have their own figures.
func TestTogether(t *testing.T) {
	var all sync.WaitGroup
	all.Add(3)
	at := func(name string, v float64) frame.Row {
		return frame.Row{Name: name, Measure: func(context.Context, *frame.World) (frame.Figures, error) {
			all.Done()
			all.Wait() // nothing is measured before all run
			if name == "breaks" {
				return nil, errors.New("broken")
			}
			return frame.Figures{"cpu": v}, nil
		}}
	}
	e := frame.Entry{Name: "made", Together: true, Columns: []frame.Column{{Key: "cpu"}}, Rows: func(*frame.World) []frame.Row {
		return []frame.Row{at("one", 1), at("two", 2), at("breaks", 3)}
	}}
	got, err := e.Run(t.Context(), &frame.World{Turns: 1})
	require.NoError(t, err)
	assert.Equal(t, []float64{1}, got.Rows[0].Values("cpu"))
	assert.Equal(t, []float64{2}, got.Rows[1].Values("cpu"))
	assert.Len(t, got.Rows[2].Failed, 1)
}

// A window that was asked for is that of all, else an entry may need a longer one.
func TestWindow(t *testing.T) {
	assert.Equal(t, frame.UsualWindow, (&frame.Entry{}).WindowOf(0))
	assert.Equal(t, 11*time.Minute, (&frame.Entry{Window: 11 * time.Minute}).WindowOf(0))
	assert.Equal(t, time.Second, (&frame.Entry{Window: 11 * time.Minute}).WindowOf(time.Second))
}

// An entry that takes long has fewer turns, unless more are asked for; what is
// asked for is what is run.
func TestTurns(t *testing.T) {
	e, order := made()
	assert.Equal(t, frame.UsualTurns, e.TurnsOf(&frame.World{}))
	e.Turns = 1
	_, err := e.Run(t.Context(), &frame.World{})
	require.NoError(t, err)
	assert.Equal(t, []string{"stock", "ours"}, *order)
	assert.Equal(t, 2, e.TurnsOf(&frame.World{Turns: 2}))
}

// A page without the comparison of answers would not show that they are right.
func TestCorrectnessIsMeasured(t *testing.T) { assert.Contains(t, entries, &correctness.Entry) }
