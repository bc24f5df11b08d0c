// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package page // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/page"

import (
	"cmp"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/likename"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
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

// renames finds families that have other names than those of the index.
type renames struct {
	index  *families.Index
	likely map[string][]likely // by names of no engine
}

// find appends the unknown families that may have the metrics which a page of the engines lacks.
func (n *renames) find(all []Renamed, unknown []string, engines []Engine) []Renamed {
	for _, name := range unknown {
		if n.partOfKnown(name) {
			continue
		}
		for _, l := range n.rows(name) {
			if n.lacks(engines, &l) {
				all = append(all, l.Renamed)
				break
			}
		}
	}
	return all
}

// partOfKnown reports whether a name is that of a part of a known histogram or summary, which
// a page without types has as a family.
func (n *renames) partOfKnown(name string) bool {
	for _, part := range [...]string{"_bucket", "_sum", "_count"} {
		if whole, is := strings.CutSuffix(name, part); is && len(n.index.Find(whole)) > 0 {
			return true
		}
	}
	return false
}

// lacks reports whether the page is the engine's, or no engine's that is known, and no row
// makes the series.
func (n *renames) lacks(engines []Engine, l *likely) bool {
	for i := range engines {
		if e := &engines[i]; e.Engine == n.index.Engines[l.engine] {
			return !e.Ended && !slices.ContainsFunc(e.Rows, func(s Selection) bool { return s.Series == l.series })
		}
	}
	return len(engines) == 0
}

// rows are the rows that a name may be of, the most likely first.
func (n *renames) rows(name string) []likely {
	if found, known := n.likely[name]; known {
		return found
	}
	if len(n.likely) >= maxLikely {
		clear(n.likely)
	}
	var found []likely
	for i, e := range n.index.Engines {
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
						Renamed{strings.Clone(name), strings.TrimPrefix(from, "="), e.Name, row.Metric.Name}, i, n.index.Sources[i][r].Series, like,
					})
				}
			}
		}
	}
	slices.SortStableFunc(found, func(a, b likely) int { return cmp.Compare(b.likeness, a.likeness) })
	n.likely[strings.Clone(name)] = found
	return found
}
