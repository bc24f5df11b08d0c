// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package costreport

import (
	"maps"
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// Len is the number of lines so far, which is what a Builder takes memory for.
func (b *Builder) Len() int { return len(b.lines) }

// Greatest are the groups that have lines of their own in a report with Top, of what was
// added. The Builder is of no use afterwards.
func (b *Builder) Greatest() map[Group]bool {
	b.price(&Report{})
	return b.greatest()
}

// Keep chooses the groups that have lines of their own, before anything is added: then the
// others take no memory. It takes the place of Top.
func (b *Builder) Keep(groups map[Group]bool) { b.kept = groups }

// grouped reports whether rows of a state are in groups.
func (b *Builder) grouped(state string) bool { return state == usage.Held || b.By.ofBoards() }

// greatest are the first Top groups of all periods together.
func (b *Builder) greatest() map[Group]bool {
	all := map[Group]*Line{}
	for key, l := range b.lines {
		if !b.grouped(key.state) {
			continue
		}
		if all[key.group] == nil {
			all[key.group] = &Line{Group: key.group}
		}
		all[key.group].plus(&l.Amounts)
	}
	groups := slices.Collect(maps.Values(all))
	slices.SortFunc(groups, greatestFirst)
	greatest := map[Group]bool{}
	for _, g := range groups[:min(b.Top, len(groups))] {
		greatest[g.Group] = true
	}
	return greatest
}

// mergeOthers leaves lines to some groups, and adds up the others.
func (b *Builder) mergeOthers(groups map[Group]bool) {
	for key, l := range b.lines {
		if groups[key.group] || !b.grouped(key.state) {
			continue
		}
		delete(b.lines, key)
		into := b.line(lineKey{start: key.start, state: key.state, others: true}, l.Start, l.End)
		into.plus(&l.Amounts)
		into.or(l.Marks)
	}
}
