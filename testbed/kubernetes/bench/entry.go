// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

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

// figures are what one turn of a row gave, by column.
type figures map[string]float64

// column is one kind of figure.
type column struct {
	Key      string `json:"key"`
	Title    string `json:"title"` // with its unit
	Decimals int    `json:"decimals"`
	Ratio    bool   `json:"ratio,omitempty"` // is shown beside the first row's
	Goal     string `json:"goal,omitempty"`

	divisor float64 // to its title's unit; 0 is 1
}

// row is one contender.
type row struct {
	name    string
	measure func(context.Context, *world) (figures, error)
	// beside is the row that ratios are to; "" is the entry's first.
	beside string
}

// entry is one comparison.
type entry struct {
	name, title, text string
	columns           []column
	rows              func(*world) []row
	// turns is how many there are of an entry that takes long, unless one asks for
	// more; 0 is as many as of the others.
	turns int
	// window is the length of a measurement that is worth less when it is shorter, unless
	// one asks for another; 0 is as long as those of the others.
	window time.Duration
	// together has all rows of a turn run at the same time: those that take next to
	// nothing, and have to be watched for long.
	together bool
	// all measures all rows of a turn at once, in place of rows.
	all func(context.Context, *world) ([]named, error)
	// Go benchmarks have no columns before they ran; a row that all names twice was
	// measured twice.
	directory string            // that they are in, from the root
	besides   map[string]string // row to the row that its ratios are to
}

// named are the figures of a row.
type named struct {
	row string
	figures
}

// result is what was measured of an entry.
type result struct {
	Machine machine     `json:"machine"`
	Command string      `json:"command"`
	Columns []column    `json:"columns"`
	Rows    []rowResult `json:"rows"`
}

type rowResult struct {
	Name    string                `json:"name"`
	Beside  string                `json:"beside,omitempty"`
	Figures map[string][]*float64 `json:"figures"` // by column, one a turn; null where a turn has none
	Failed  []string              `json:"failed,omitempty"`
}

// values are a row's figures of a column, NaN where a turn has none.
func (r *rowResult) values(key string) []float64 {
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

// usualTurns is how many turns an entry has.
const usualTurns = 5

// turnsOf is how many turns it has now.
func (e *entry) turnsOf(w *world) int {
	switch {
	case w.turns > 0:
		return w.turns
	case e.turns > 0:
		return e.turns
	default:
		return usualTurns
	}
}

// usualWindow is the length of a measurement.
const usualWindow = time.Minute

// windowOf is what it is now.
func (e *entry) windowOf(asked time.Duration) time.Duration {
	return cmp.Or(asked, e.window, usualWindow)
}

// run measures all rows in turns, so that what disturbs the machine for a while
// disturbs all of them. A row that fails is reported, and costs no other.
func (e *entry) run(ctx context.Context, w *world) (result, error) {
	out := result{Columns: e.columns}
	if e.all != nil {
		return e.runAll(ctx, w, out)
	}
	rows := e.rows(w)
	for _, r := range rows {
		out.Rows = append(out.Rows, rowResult{Name: r.name, Beside: r.beside, Figures: map[string][]*float64{}})
	}
	for turn := range e.turnsOf(w) {
		measure := func(i int) {
			got, err := rows[i].measure(ctx, w)
			if err != nil {
				err = fmt.Errorf("turn %d: %w", turn+1, err)
				log.Printf("%s: %s: %v", e.name, rows[i].name, err)
				out.Rows[i].Failed = append(out.Rows[i].Failed, err.Error())
			} else {
				log.Printf("%s: %s: turn %d: %v", e.name, rows[i].name, turn+1, got)
			}
			out.Rows[i].add(e.columns, got)
		}
		var all sync.WaitGroup
		for i := range rows {
			i = (i + turn) % len(rows) // none is always the first
			if e.together {
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
func (e *entry) runAll(ctx context.Context, w *world, out result) (result, error) {
	var all []named
	for turn := range e.turnsOf(w) {
		got, err := e.all(ctx, w)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		if err != nil {
			err = fmt.Errorf("turn %d: %w", turn+1, err)
			log.Printf("%s: %v", e.name, err)
			if len(out.Rows) == 0 {
				out.Rows = append(out.Rows, rowResult{Name: "all", Figures: map[string][]*float64{}})
			}
			out.Rows[0].Failed = append(out.Rows[0].Failed, err.Error())
		}
		all = append(all, got...)
		log.Printf("%s: turn %d: %d rows", e.name, turn+1, len(got))
	}
	if e.columns == nil {
		out.Columns = units(all)
	}
	for _, n := range all {
		i := slices.IndexFunc(out.Rows, func(r rowResult) bool { return r.Name == n.row })
		if i < 0 {
			i = len(out.Rows)
			row := rowResult{Name: n.row, Figures: map[string][]*float64{}}
			if e.columns == nil { // most stand beside nothing
				row.Beside = cmp.Or(e.besides[n.row], n.row)
			}
			out.Rows = append(out.Rows, row)
		}
		out.Rows[i].add(out.Columns, n.figures)
	}
	return out, nil
}

// add adds a turn.
func (r *rowResult) add(columns []column, got figures) {
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
func units(all []named) (columns []column) {
	var names []string
	for _, n := range all {
		for name := range n.figures {
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
		columns = append(columns, column{Key: name, Title: name, Decimals: -1, Ratio: true})
	}
	return columns
}

// row is the one of this name, nil where there is none.
func (r *result) row(name string) *rowResult {
	i := slices.IndexFunc(r.Rows, func(o rowResult) bool { return o.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Rows[i]
}
