// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package page // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/page"

import (
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
)

// signs are what makes a page an engine's.
type signs struct {
	marked, prefixed bool
	bare             int // metrics of families without a prefix
	touched          bool
}

func (s *signs) add(ref families.Ref, prefixes []string) {
	s.touched = true
	switch {
	case ref.Family == families.Mark:
		s.marked = true
	case ref.Family < 0 || ref.Prefix == families.Whole:
	case prefixes[ref.Prefix] == "":
		s.bare++
	default:
		s.prefixed = true
	}
}

// Engine finds an engine of the index by its name; nil if there is none.
func (p *Page) Engine(name string) *families.Engine {
	for _, e := range p.index.Engines {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// resolve decides which engine's page it is, and which rows it fills: by the metrics with values.
// An engine of the page before of which only markers are left has ended.
func (p *Page) resolve(hint string, last []string) {
	p.find(hint, false)
	for i, e := range p.index.Engines {
		if p.engines[i].all.touched && slices.Contains(last, e.Name) && !p.has(e) {
			p.choose(i, true)
		}
	}
	if len(p.Engines) == 0 && len(last) == 0 {
		p.find(hint, true)
	}
}

func (p *Page) has(e *families.Engine) bool {
	return slices.ContainsFunc(p.Engines, func(o Engine) bool { return o.Engine == e })
}

// find chooses the engines that the page is of, by values, or by markers alone.
func (p *Page) find(hint string, ended bool) {
	hidden := map[string]bool(nil)
	bare := p.bare(hint, ended)
	for i, e := range p.index.Engines {
		if (e.Hides != "" || len(e.Repeats) > 0) && p.of(i, bare, hint, ended) {
			if hidden == nil {
				hidden = map[string]bool{}
			}
			hidden[e.Hides] = true
			for _, name := range e.Repeats {
				hidden[name] = true
			}
		}
	}
	for i, e := range p.index.Engines {
		if !hidden[e.Name] && p.of(i, bare, hint, ended) {
			p.choose(i, ended)
		}
	}
}

func (p *Page) signs(i int, ended bool) *signs {
	if ended {
		return &p.engines[i].all
	}
	return &p.engines[i].live
}

// bare is the number of the engine that families without a prefix belong to: the one at
// the target, else the first of which there are enough; -1 for none.
func (p *Page) bare(hint string, ended bool) int {
	owner := -1
	for i, e := range p.index.Engines {
		switch s := p.signs(i, ended); {
		case s.bare == 0:
		case hint == e.Name:
			return i
		case owner < 0 && s.bare >= enough:
			owner = i
		}
	}
	return owner
}

// of reports whether the page is of an engine.
func (p *Page) of(i, bare int, hint string, ended bool) bool {
	e, s := p.index.Engines[i], p.signs(i, ended)
	switch {
	case !s.touched:
		return false
	case len(e.Marks) > 0:
		return s.marked || hint == e.Name
	case hint == e.Name, i == bare:
		return true
	default:
		return s.prefixed && e.Hides == ""
	}
}
