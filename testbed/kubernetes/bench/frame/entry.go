// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// Figures are what one turn of a row gave, by column.
type Figures map[string]float64

// Column is one kind of figure.
type Column struct {
	Key      string `json:"key"`
	Title    string `json:"title"` // with its unit
	Decimals int    `json:"decimals"`
	Ratio    bool   `json:"ratio,omitempty"` // is shown beside the first row's
	Goal     string `json:"goal,omitempty"`

	Divisor float64 // to its title's unit; 0 is 1
}

// Row is one contender.
type Row struct {
	Name    string
	Measure func(context.Context, *World) (Figures, error)
	// beside is the row that ratios are to; "" is the entry's first.
	Beside string
}

// Entry is one comparison.
type Entry struct {
	Name, Title, Text string
	Columns           []Column
	Rows              func(*World) []Row
	// turns is how many there are of an entry that takes long, unless one asks for
	// more; 0 is as many as of the others.
	Turns int
	// window is the length of a measurement that is worth less when it is shorter, unless
	// one asks for another; 0 is as long as those of the others.
	Window time.Duration
	// together has all rows of a turn run at the same time: those that take next to
	// nothing, and have to be watched for long.
	Together bool
	// all measures all rows of a turn at once, in place of rows.
	All func(context.Context, *World) ([]Named, error)
	// Go benchmarks have no columns before they ran; a row that all names twice was
	// measured twice.
	Directory string            // that they are in, from the root
	Besides   map[string]string // row to the row that its ratios are to
	// Sources are the components that it measures and the configurations that it runs,
	// from the root: where one has changed, what was measured before is stale.
	Sources []string
}

// Named are the figures of a row.
type Named struct {
	Row string
	Figures
}

// Result is what was measured of an entry.
type Result struct {
	Machine machine `json:"machine"`
	Command string  `json:"command"`
	// Sources are the hashes of the entry's, when the measurement began.
	Sources map[string]string `json:"sources,omitempty"`
	Columns []Column          `json:"columns"`
	Rows    []RowResult       `json:"rows"`
}

type RowResult struct {
	Name    string                `json:"name"`
	Beside  string                `json:"beside,omitempty"`
	Figures map[string][]*float64 `json:"figures"` // by column, one a turn; null where a turn has none
	Failed  []string              `json:"failed,omitempty"`
}

// Values are a row's figures of a column, NaN where a turn has none.
func (r *RowResult) Values(key string) []float64 {
	var all []float64
	for _, v := range r.Figures[key] {
		if v == nil {
			all = append(all, math.NaN())
		} else {
			all = append(all, *v)
		}
	}
	return all
}

// UsualTurns is how many turns an entry has.
const UsualTurns = 5

// TurnsOf is how many turns it has now.
func (e *Entry) TurnsOf(w *World) int {
	switch {
	case w.Turns > 0:
		return w.Turns
	case e.Turns > 0:
		return e.Turns
	default:
		return UsualTurns
	}
}

// UsualWindow is the length of a measurement.
const UsualWindow = time.Minute

// WindowOf is what it is now.
func (e *Entry) WindowOf(asked time.Duration) time.Duration {
	return cmp.Or(asked, e.Window, UsualWindow)
}

// Run measures all rows in turns, so that what disturbs the machine for a while
// disturbs all of them. A row that fails is reported, and costs no other.
func (e *Entry) Run(ctx context.Context, w *World) (Result, error) {
	out := Result{Columns: e.Columns}
	if e.All != nil {
		return e.runAll(ctx, w, out)
	}
	rows := e.Rows(w)
	for _, r := range rows {
		out.Rows = append(out.Rows, RowResult{Name: r.Name, Beside: r.Beside, Figures: map[string][]*float64{}})
	}
	for turn := range e.TurnsOf(w) {
		measure := func(i int) {
			got, err := rows[i].Measure(ctx, w)
			if err != nil {
				err = fmt.Errorf("turn %d: %w", turn+1, err)
				log.Printf("%s: %s: %v", e.Name, rows[i].Name, err)
				out.Rows[i].Failed = append(out.Rows[i].Failed, err.Error())
			} else {
				log.Printf("%s: %s: turn %d: %v", e.Name, rows[i].Name, turn+1, got)
			}
			out.Rows[i].add(e.Columns, got)
		}
		var all sync.WaitGroup
		for i := range rows {
			i = (i + turn) % len(rows) // none is always the first
			if e.Together {
				all.Go(func() { measure(i) })
			} else if measure(i); ctx.Err() != nil {
				return out, ctx.Err()
			}
		}
		if all.Wait(); ctx.Err() != nil {
			return out, ctx.Err()
		}
	}
	return out, nil
}

// runAll runs an entry that measures its rows at once.
func (e *Entry) runAll(ctx context.Context, w *World, out Result) (Result, error) {
	var all []Named
	for turn := range e.TurnsOf(w) {
		got, err := e.All(ctx, w)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		if err != nil {
			err = fmt.Errorf("turn %d: %w", turn+1, err)
			log.Printf("%s: %v", e.Name, err)
			if len(out.Rows) == 0 {
				out.Rows = append(out.Rows, RowResult{Name: "all", Figures: map[string][]*float64{}})
			}
			out.Rows[0].Failed = append(out.Rows[0].Failed, err.Error())
		}
		all = append(all, got...)
		log.Printf("%s: turn %d: %d rows", e.Name, turn+1, len(got))
	}
	if e.Columns == nil {
		out.Columns = units(all)
	}
	for _, n := range all {
		i := slices.IndexFunc(out.Rows, func(r RowResult) bool { return r.Name == n.Row })
		if i < 0 {
			i = len(out.Rows)
			row := RowResult{Name: n.Row, Figures: map[string][]*float64{}}
			if e.Columns == nil { // most stand beside nothing
				row.Beside = cmp.Or(e.Besides[n.Row], n.Row)
			}
			out.Rows = append(out.Rows, row)
		}
		out.Rows[i].add(out.Columns, n.Figures)
	}
	return out, nil
}

// add adds a turn.
func (r *RowResult) add(columns []Column, got Figures) {
	for _, c := range columns {
		var value *float64
		if v, ok := got[c.Key]; ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
			value = &v
		}
		r.Figures[c.Key] = append(r.Figures[c.Key], value)
	}
}

// units are the columns of Go benchmarks: time, what they report themselves, and
// allocations.
func units(all []Named) (columns []Column) {
	var names []string
	for _, n := range all {
		for name := range n.Figures {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	usual := []string{"B/op", "allocs/op"}
	slices.SortFunc(names, func(a, b string) int {
		rank := func(name string) int {
			if name == "ns/op" {
				return -1
			}
			return 1 + slices.Index(usual, name)
		}
		if by := rank(a) - rank(b); by != 0 {
			return by
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		columns = append(columns, Column{Key: name, Title: name, Decimals: -1, Ratio: true})
	}
	return columns
}

// Row is the one of this name, nil where there is none.
func (r *Result) Row(name string) *RowResult {
	i := slices.IndexFunc(r.Rows, func(o RowResult) bool { return o.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Rows[i]
}
