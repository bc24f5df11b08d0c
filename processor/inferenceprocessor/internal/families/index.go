// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Ref is what a name on a page may be: a family of an engine, under one of its
// prefixes. Prefix is Whole for a name that has none. Family is negative for a mark, and
// for what is dropped.
type Ref struct {
	Engine, Prefix, Family int
}

// Whole is the Ref.Prefix of a name to which no prefix belongs.
const Whole = -1

const (
	// Mark is the Ref.Family of a family that only makes the page an engine's.
	Mark = -1
	// Drop is the Ref.Family of one of Engine.Dropped.
	Drop = -2
	// Pass is the Ref.Family of one of Engine.Passed.
	Pass = -3
)

// Source has the numbers of the families that a row reads.
type Source struct {
	From, Unless []int
	With, Beside int // negative if the row has none
	// Series is the number of the first row of the engine that makes the same series,
	// which is this one unless it is an alternative.
	Series int
	// Key is a hash of the metric and the attributes that all series of the row have: the
	// sum of those of its pairs, to which those of each series are added.
	Key uint64
}

// seed is of hashes of this process.
var seed = maphash.MakeSeed()

// Pair is a hash of an attribute, in this process. The hash of several is the sum: it has
// no order.
func Pair(key, value string) uint64 {
	h := maphash.String(seed, key)*0x9e3779b97f4a7c15 ^ maphash.String(seed, value)
	h ^= h >> 32 // otherwise values could change places between keys
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}

// Index finds the families of engines by their names on pages. It is not changed
// after it was made, and safe for concurrent use.
type Index struct {
	Engines []*Engine
	// Sources are the families of each engine's rows.
	Sources [][]Source
	// Named are the families that name a gateway.
	Named [][]int
	// Families is how many families each engine has.
	Families []int

	refs map[string][]Ref
	// stems are how names begin that stand for all that begin so, by the first byte, sorted;
	// none begins as another does. Most names of no engine have a byte that none begins with.
	stems [256][]stem
}

type stem struct {
	text string
	refs []Ref
}

// NewIndex indexes the engines, which the caller may have reduced to those it wants.
// It panics where a row contradicts itself, which is a mistake in the table.
func NewIndex(engines []*Engine) *Index {
	x := &Index{Engines: engines, refs: map[string][]Ref{}}
	for i, e := range engines {
		x.add(i, e)
	}
	for i, stems := range x.stems {
		slices.SortFunc(stems, func(a, b stem) int { return strings.Compare(a.text, b.text) })
		kept := stems[:0]
		for _, s := range stems {
			if n := len(kept); n == 0 || !strings.HasPrefix(s.text, kept[n-1].text) {
				kept = append(kept, s)
			}
		}
		x.stems[i] = kept
	}
	return x
}

func (x *Index) add(number int, e *Engine) {
	families := map[string]int{}
	// family numbers a family and puts it under all the names that it has on pages.
	family := func(name string, counter bool) int {
		id, known := families[name]
		if !known {
			id = len(families)
			families[name] = id
		}
		if whole, ok := strings.CutPrefix(name, "="); ok {
			x.put(whole, Ref{number, Whole, id})
			return id
		}
		for p, prefix := range e.Prefixes {
			x.put(prefix+name, Ref{number, p, id})
			if counter {
				x.put(prefix+name+"_total", Ref{number, p, id})
			}
		}
		return id
	}
	sources := make([]Source, len(e.Rows))
	for i := range e.Rows {
		r := &e.Rows[i]
		check(e, r)
		counter := r.Metric.Kind == names.Counter && r.Rule != SumOf && r.Rule != CountOf || r.Rule == Mean
		s := Source{With: -1, Beside: -1, Series: slices.IndexFunc(e.Rows, r.alternative)}
		s.Key = Pair(names.InferenceEngine, e.Name) + xxhash.Sum64String(r.Metric.Name)
		for _, a := range r.Attributes {
			s.Key += Pair(a.Key, a.Value)
		}
		for _, name := range r.From {
			s.From = append(s.From, family(name, counter))
		}
		if r.With != "" {
			s.With = family(r.With, counter)
		}
		if r.Beside != "" {
			s.Beside = family(r.Beside, true)
		}
		for _, name := range r.Unless {
			s.Unless = append(s.Unless, family(name, true))
		}
		sources[i] = s
	}
	var named []int
	for _, name := range e.NamedBy {
		named = append(named, family(name, false))
	}
	x.Named = append(x.Named, named)
	for _, mark := range e.Marks {
		x.put(mark, Ref{number, 0, Mark})
	}
	for _, name := range e.Dropped {
		x.list(name, Ref{number, 0, Drop})
	}
	for _, name := range e.Passed {
		for p, prefix := range e.Prefixes {
			x.list(prefix+name, Ref{number, p, Pass})
			if !strings.HasSuffix(name, "*") {
				x.put(prefix+name+"_total", Ref{number, p, Pass})
			}
		}
	}
	x.Sources = append(x.Sources, sources)
	x.Families = append(x.Families, len(families))
}

// alternative reports whether two rows make the same series.
func (r *Row) alternative(other Row) bool {
	return other.Metric == r.Metric && slices.Equal(other.Attributes, r.Attributes) &&
		slices.EqualFunc(other.Dimensions, r.Dimensions, func(a, b Dimension) bool { return a.Label == b.Label })
}

// At most as many dimensions has a row, and labels of ranks in Lowest an engine.
const (
	MaxDimensions = 3
	MaxRanks      = 3
)

func check(e *Engine, r *Row) {
	switch {
	case len(r.Dimensions) > MaxDimensions:
		panic(fmt.Sprintf("%s: a row of %s with more than %d dimensions", e.Name, r.Metric.Name, MaxDimensions))
	case len(e.Lowest) > MaxRanks:
		panic(fmt.Sprintf("%s: more than %d labels of ranks", e.Name, MaxRanks))
	case len(r.From) == 0:
		panic(fmt.Sprintf("%s: a row of %s without a family", e.Name, r.Metric.Name))
	case r.Metric.Kind == names.Histogram && r.Rule != Copy && r.Rule != Mean:
		panic(fmt.Sprintf("%s: %s cannot be computed so: it is a histogram", e.Name, r.Metric.Name))
	case slices.Contains([]Rule{Product, Quotient, Difference, Mean, Given}, r.Rule) != (r.With != ""):
		panic(fmt.Sprintf("%s: %s: With and Rule do not fit", e.Name, r.Metric.Name))
	case e.Gateway != strings.HasPrefix(r.Metric.Name, "inference.gateway."):
		panic(fmt.Sprintf("%s: %s is of the other tier", e.Name, r.Metric.Name))
	}
}

// list puts a name, or if it ends in * all that begin so.
func (x *Index) list(name string, r Ref) {
	if text, ok := strings.CutSuffix(name, "*"); ok {
		x.stems[text[0]] = append(x.stems[text[0]], stem{text, []Ref{r}})
	} else {
		x.put(name, r)
	}
}

func (x *Index) put(name string, r Ref) {
	if !slices.Contains(x.refs[name], r) {
		x.refs[name] = append(x.refs[name], r)
	}
}

// Find returns what a name on a page may be; nothing for a name that no engine has.
func (x *Index) Find(name string) []Ref {
	if refs, ok := x.refs[name]; ok {
		return refs
	}
	if name == "" {
		return nil
	}
	stems := x.stems[name[0]]
	after, _ := slices.BinarySearchFunc(stems, name, func(s stem, name string) int {
		if s.text <= name {
			return -1
		}
		return 1
	})
	if after > 0 && strings.HasPrefix(name, stems[after-1].text) {
		return stems[after-1].refs
	}
	return nil
}
