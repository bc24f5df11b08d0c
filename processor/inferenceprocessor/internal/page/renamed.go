// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package page // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/page"

import (
	"cmp"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/likename"
)

// Renamed is a family that is in no table, on a page that lacks a metric which it may have.
type Renamed struct {
	// Family is its name, and Like the known one of the engine that is like it.
	Family, Like   string
	Engine, Metric string
}

// likely is a row that a family which is in no table may be of.
type likely struct {
	Renamed
	engine, series int
	likeness       float64
}

// maxLikely is how many names are remembered.
const maxLikely = 4096

// findRenamed finds the families that may have the metrics that the page lacks.
func (p *Page) findRenamed() {
	p.Renamed = p.Renamed[:0]
	for _, name := range p.Unknown {
		for _, l := range p.likelyRows(name) {
			if p.lacks(&l) {
				p.Renamed = append(p.Renamed, l.Renamed)
				break
			}
		}
	}
}

// lacks reports whether the page is the engine's, or no engine's that is known, and no row
// makes the series.
func (p *Page) lacks(l *likely) bool {
	for i := range p.Engines {
		if e := &p.Engines[i]; e.Engine == p.index.Engines[l.engine] {
			return !e.Ended && !slices.ContainsFunc(e.Rows, func(s Selection) bool { return s.Series == l.series })
		}
	}
	return len(p.Engines) == 0
}

// likelyRows are the rows that a name may be of, the most likely first.
func (p *Page) likelyRows(name string) []likely {
	if found, known := p.likely[name]; known {
		return found
	}
	if len(p.likely) >= maxLikely {
		clear(p.likely)
	}
	var found []likely
	for i, e := range p.index.Engines {
		rest := ""
		for _, prefix := range e.Prefixes {
			if after, ours := strings.CutPrefix(name, prefix); ours && prefix != "" {
				rest = after
				break
			}
		}
		if rest == "" {
			continue
		}
		for r := range e.Rows {
			row := &e.Rows[r]
			for _, from := range row.From {
				if like := likename.Likeness(rest, from); like >= likename.Likely {
					found = append(found, likely{
						Renamed{strings.Clone(name), strings.TrimPrefix(from, "="), e.Name, row.Metric.Name}, i, p.index.Sources[i][r].Series, like,
					})
				}
			}
		}
	}
	slices.SortStableFunc(found, func(a, b likely) int { return cmp.Compare(b.likeness, a.likeness) })
	p.likely[strings.Clone(name)] = found
	return found
}
