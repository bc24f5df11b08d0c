// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"debug/buildinfo"
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
)

func TestMedian(t *testing.T) {
	assert.Equal(t, 2.0, median([]float64{3, 1, 2}))
	assert.Equal(t, 2.5, median([]float64{4, 1, 2, 3}))
	assert.True(t, math.IsNaN(median(nil)))
}

// A turn that lacks one of the two has no ratio.
func TestRatios(t *testing.T) {
	assert.Equal(t, []float64{2, 3}, ratios([]float64{4, math.NaN(), 9, 1}, []float64{2, 5, 3, 0}))
}

// made is an entry with rows that depend on the turn: a disturbed second turn is
// twice as slow for all, and the third of one row fails.
func made() (entry, *[]string) {
	var order []string
	turns := map[string]int{}
	at := func(name string, base float64) row {
		return row{name: name, measure: func(context.Context, *world) (figures, error) {
			order = append(order, name)
			turns[name]++
			switch {
			case turns[name] == 2:
				return figures{"cpu": 2 * base, "rss": 100}, nil
			case turns[name] == 3 && name == "ours":
				return nil, errors.New("it ended\nwith a long log")
			}
			return figures{"cpu": base, "rss": 100}, nil
		}}
	}
	return entry{
		name: "made", title: "Made up", text: "Of a test.",
		columns: []column{{Key: "cpu", Title: "CPU, us", Decimals: 1, Ratio: true, Goal: "3"}, {Key: "rss", Title: "resident, MiB"}, {Key: "none", Title: "nothing"}},
		rows:    func(*world) []row { return []row{at("stock", 4), at("ours", 1)} },
	}, &order
}

// Rows take turns, none is always the first, ratios are of one turn, and a row
// that fails costs no other and is reported.
func TestRunAndRender(t *testing.T) {
	e, order := made()
	got, err := e.run(t.Context(), &world{turns: 3})
	require.NoError(t, err)
	assert.Equal(t, []string{"stock", "ours", "ours", "stock", "stock", "ours"}, *order)
	got.Command = "make bench"

	before := entries
	t.Cleanup(func() { entries = before })
	entries = []*entry{&e}
	path := filepath.Join(t.TempDir(), "performance.json")
	require.NoError(t, save(path, map[string]result{"made": got}))
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
	report, err := page(medians(read))
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
		assert.NotEmpty(t, short[e.name], e.name)
	}
	_, results := committed(t)
	text, err := page(results)
	require.NoError(t, err)
	assert.LessOrEqual(t, strings.Count(string(text), "\n"), 250)
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
	got, err := readBenchmarks([]byte("goos: linux\npkg: github.com/otelcol-gpu/otelcol-gpu/a\nBenchmarkA/x=1-2 \t 10\t 12 ns/op\t 3 allocs/op\nBenchmarkA/x=1-2 \t 10\t 14 ns/op\t 3 allocs/op\nBenchmarkLooksLike one\nPASS\n"))
	require.NoError(t, err)
	assert.Equal(t, []named{{"A/x=1", figures{"ns/op": 12, "allocs/op": 3}}, {"A/x=1", figures{"ns/op": 14, "allocs/op": 3}}}, got)
	_, err = readBenchmarks([]byte("PASS\n"))
	assert.Error(t, err)
}

// Two packages may have a benchmark of one name, and a name may end in a number
// without there being more than one core.
func TestReadBenchmarksOfPackages(t *testing.T) {
	got, err := readBenchmarks([]byte("pkg: github.com/otelcol-gpu/otelcol-gpu/a\nBenchmarkMemory 1 5 B/pod\npkg: github.com/otelcol-gpu/otelcol-gpu/b/c\nBenchmarkMemory-9 1 6 B/device\n"))
	require.NoError(t, err)
	assert.Equal(t, []named{{"a: Memory", figures{"B/pod": 5}}, {"b/c: Memory-9", figures{"B/device": 6}}}, got)
}

// A table for each package and set of units; each run of a benchmark is a value; a
// table with many units lies on its side.
func TestGoBenchmarksShown(t *testing.T) {
	e := entry{name: "go-made", title: "Made", all: func(context.Context, *world) ([]named, error) {
		return []named{
			{"a: One", figures{"ns/op": 10, "allocs/op": 2, "x": 0.1234}},
			{"a: One", figures{"ns/op": 30, "allocs/op": 2, "x": 0.1234}},
			{"a: Two", figures{"ns/op": 5, "allocs/op": 1, "x": 1234.5}},
			{"b: Three", figures{"B/x": 1, "ns/op": 1, "u1": 1, "u2": 1, "u3": 1, "u4": 1, "u5": 1, "u6": 1, "u7": 1}},
		}, nil
	}, besides: map[string]string{"a: Two": "a: One"}}
	got, err := e.run(t.Context(), &world{turns: 1})
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
	e := entry{name: "go-made", title: "Made", all: func(context.Context, *world) ([]named, error) {
		return []named{
			{"A", figures{"ns/op": 1.5e6, "B/op": 900}}, {"B", figures{"ns/op": 2e9, "B/op": 1 << 30}},
			{"Memory/pods=1", figures{"ns/op": 1.5e6, "B/op": 900, "B/pod": 1536}},
		}, nil
	}}
	got, err := e.run(t.Context(), &world{turns: 1})
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
	entries = []*entry{&e}
	goals = []goal{{what: "cheap", unit: "us", place: place{"made", "ours", "cpu"}, limit: 3, cause: "Never told."}}
	failed := map[string]result{"made": {Rows: []rowResult{{Name: "ours", Figures: map[string][]*float64{"cpu": {nil}}, Failed: []string{"it ended"}}}}}
	report, err := page(failed)
	require.NoError(t, err)
	assert.Contains(t, string(report), "| [cheap](#made-up) | at most 3 us | failed | **missed**: it could not be measured, as its section shows |")
	text, err := fill("<!-- bench: made; ours; cpu -->3<!-- /bench -->", failed)
	require.NoError(t, err)
	assert.Equal(t, "<!-- bench: made; ours; cpu -->"+unmeasured+"<!-- /bench -->", text)
}

// Who does not scrape is not cheap.
func TestScrapedAll(t *testing.T) {
	assert.NoError(t, scrapedAll(400, 400))
	assert.NoError(t, scrapedAll(390, 400))
	assert.ErrorContains(t, scrapedAll(200, 400), "200 pages were scraped, and 400 were due")
	server, targets, samples, err := simulate(2)
	require.NoError(t, err)
	defer server.Close()
	assert.Len(t, targets, 2)
	assert.Greater(t, samples, 60*8)
	assert.Eventually(t, func() bool { return server.Pages() == 1 }, time.Minute, time.Millisecond) // the one that was counted
}

// A program of another version is built again.
func TestIsVersion(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	info, err := buildinfo.ReadFile(self)
	require.NoError(t, err)
	assert.True(t, isVersion(self, info.Main.Version))
	assert.False(t, isVersion(self, "v0.0.1"))
	assert.False(t, isVersion(filepath.Join(t.TempDir(), "none"), ""))
}

// What a command started ends with it.
func TestCommandEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd := command(ctx, "sh", "-c", "sleep 600 & echo; wait")
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
	w, err := watch(t.Context(), os.Getpid(), 1200*time.Millisecond)
	require.NoError(t, err)
	assert.Positive(t, w.rss)
	assert.Positive(t, w.anon)
	assert.LessOrEqual(t, w.anon, w.rss)
	assert.GreaterOrEqual(t, w.took, 1200*time.Millisecond)
	_, err = watch(t.Context(), math.MaxInt32, time.Millisecond)
	assert.Error(t, err)
}

// Every entry can be chosen and shown: names and columns are there once.
func TestEntries(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range entries {
		assert.False(t, seen[e.name], e.name)
		seen[e.name] = true
		assert.NotEmpty(t, e.title)
		assert.NotEqual(t, e.rows == nil, e.all == nil, e.name)
		keys := map[string]bool{}
		for _, c := range e.columns {
			assert.False(t, keys[c.Key], "%s: %s", e.name, c.Key)
			keys[c.Key] = true
			assert.False(t, strings.Contains(c.Title, "|"))
		}
		if e.rows != nil {
			names := map[string]bool{}
			for _, r := range e.rows(&world{}) {
				assert.False(t, names[r.name], r.name)
				names[r.name] = true
				assert.True(t, r.beside == "" || names[r.beside], "%s stands beside %s, which comes later or not at all", r.name, r.beside)
			}
		}
	}
}

// Rows that run together all run at the same time, and have their own figures.
func TestTogether(t *testing.T) {
	var all sync.WaitGroup
	all.Add(3)
	at := func(name string, v float64) row {
		return row{name: name, measure: func(context.Context, *world) (figures, error) {
			all.Done()
			all.Wait() // nothing is measured before all run
			if name == "breaks" {
				return nil, errors.New("broken")
			}
			return figures{"cpu": v}, nil
		}}
	}
	e := entry{name: "made", together: true, columns: []column{{Key: "cpu"}}, rows: func(*world) []row {
		return []row{at("one", 1), at("two", 2), at("breaks", 3)}
	}}
	got, err := e.run(t.Context(), &world{turns: 1})
	require.NoError(t, err)
	assert.Equal(t, []float64{1}, got.Rows[0].values("cpu"))
	assert.Equal(t, []float64{2}, got.Rows[1].values("cpu"))
	assert.Len(t, got.Rows[2].Failed, 1)
}

// A window that was asked for is that of all, else an entry may need a longer one.
func TestWindow(t *testing.T) {
	assert.Equal(t, usualWindow, (&entry{}).windowOf(0))
	assert.Equal(t, 11*time.Minute, (&entry{window: 11 * time.Minute}).windowOf(0))
	assert.Equal(t, time.Second, (&entry{window: 11 * time.Minute}).windowOf(time.Second))
}
