// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmllab

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// result counts the cases of this run.
var result struct {
	sync.Mutex
	cases, failed, late int
}

func TestMain(m *testing.M) {
	// Cases wait most of the time; -parallel still counts.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	code := m.Run()
	fmt.Printf("cases %d, failed %d, neighbours late %d\n", result.cases, result.failed, result.late)
	os.Exit(code)
}

// Counted counts a case.
func Counted(t *testing.T) {
	t.Cleanup(func() {
		result.Lock()
		defer result.Unlock()
		result.cases++
		if t.Failed() {
			result.failed++
		}
	})
}

// Late counts a neighbour that is late.
func Late() {
	result.Lock()
	defer result.Unlock()
	result.late++
}

// All is whether every case is to be run.
func All() bool { return all() }

// world is a laboratory in which something is wrong of the first board, and the others are
// its neighbours, and a helper.
type world struct {
	*Lab
	*testing.T
	helper *Helper
}

// scenario runs a case beside others.
func scenario(t *testing.T, name string, opts Options, run func(w *world)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		Counted(t)
		if opts.Boards == 0 {
			opts.Boards = 3
		}
		w := &world{Lab: Start(t, opts), T: t}
		w.helper = w.StartHelper()
		run(w)
	})
}

// scrape asks for all boards and waits for all that answer in time; those that are
// neighbours have to.
func (w *world) scrape(change ...func(*nvmlproto.Request)) Answer {
	w.T.Helper()
	a := w.helper.Scrape(limit, change...)
	require.NotNil(w.T, a.System, "no answer; the helper wrote %q", w.helper.Text())
	w.neighbours(a)
	return a
}

// stuck asks, and waits until all but the first board have answered.
func (w *world) stuck() Answer {
	w.T.Helper()
	a := w.helper.ScrapeOthers(limit, w.thread(0))
	require.NotNil(w.T, a.System, "no answer; the helper wrote %q", w.helper.Text())
	assert.NotContains(w.T, a.Boards, w.thread(0))
	w.neighbours(a)
	return a
}

func (w *world) thread(board int) string { return deviceid.PCIAddress(w.Truth()[board].PCIBusID) }

// neighbours holds all but the first board against what is true.
func (w *world) neighbours(a Answer) {
	w.T.Helper()
	for i, truth := range w.Truth() {
		if i == 0 {
			continue
		}
		board := a.Of(w.Lab, i)
		if board == nil {
			Late()
			w.T.Errorf("neighbour %d is late", i)
			continue
		}
		values, _ := got(board.Values)
		assert.Equal(w.T, without(want(&truth, 550127), "pcie."), values, "neighbour %d", i)
	}
}

// first are the values of the first board.
func (w *world) first(a Answer) map[string]float64 {
	w.T.Helper()
	board := a.Of(w.Lab, 0)
	if board == nil {
		w.T.Error("no answer of the first board")
		return nil
	}
	values, _ := got(board.Values)
	return values
}

// right is that all values of the first board are there and true, but those.
func (w *world) right(a Answer, but ...string) {
	w.T.Helper()
	should := without(want(&w.Truth()[0], 550127), "pcie.")
	for _, name := range but {
		delete(should, name)
	}
	assert.Equal(w.T, should, w.first(a))
}

// calls is how often the first board was asked for something.
func (w *world) calls(name string) (n int) {
	for _, c := range w.Calls() {
		if !c.End && c.Device == "0" && c.Name == name {
			n++
		}
	}
	return n
}

// quick are the numbers of a list that make test runs too: the first and each n-th.
func quick[T any](list []T, n int) []T {
	if all() {
		return list
	}
	var out []T
	for i := 0; i < len(list); i += n {
		out = append(out, list[i])
	}
	return out
}
