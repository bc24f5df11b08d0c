// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package translate // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/translate"

import (
	"cmp"
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/page"
)

// label is the text of a label; empty is absent.
func label(attributes pcommon.Map, key string) string {
	if v, ok := attributes.Get(key); ok {
		return v.AsString()
	}
	return ""
}

// subject is what a series of a row is of: the values that become attributes.
type subject struct {
	model, rank string
	// words are the values of the row's dimensions, and outcome what the first with one
	// means.
	words   [families.MaxDimensions]string
	outcome string
}

// modelOn is the model that a series of the page names; empty for none.
func modelOn(e *families.Engine, attributes pcommon.Map) string {
	for _, key := range e.Model {
		if m := label(attributes, key); m != "" {
			return m
		}
	}
	return ""
}

func (t *reader) subject(e *families.Engine, r *families.Row, attributes pcommon.Map) subject {
	s := subject{model: cmp.Or(modelOn(e, attributes), t.model)}
	if e.Rank != "" {
		s.rank = label(attributes, e.Rank)
	}
	for i, d := range r.Dimensions {
		word := label(attributes, d.Label)
		if w, ok := d.Words[word]; ok {
			word = w
		}
		if d.Outcome != "" {
			s.outcome = families.Outcome(word, d.Outcome)
			if !t.target.Known(kindReason, word, maxReasons, keepWord, t.now) {
				word = ""
			}
		}
		s.words[i] = word
	}
	return s
}

// Kinds of words that a target may have so many of.
const (
	kindReason uint64 = iota
	kindModel
)

// key is a hash of the metric and the attributes of a series, from whichever row it is.
func (t *reader) key(s *page.Selection, of *subject, attributes pcommon.Map) uint64 {
	key := s.Key
	add := func(attribute, value string) {
		if value != "" {
			key += families.Pair(attribute, value)
		}
	}
	add(names.GenAIRequestModel, of.model)
	add(names.InferenceEngineRank, of.rank)
	add(names.InferenceOutcome, of.outcome)
	for i, d := range s.Row.Dimensions {
		add(d.Attribute, of.words[i])
	}
	for _, k := range t.o.Attributes {
		add(k, label(attributes, k))
	}
	return key
}

// sourceID is a hash of what gives a value to a series: a row, and labels. The lowest of
// its ranks may be another one.
func sourceID(e *families.Engine, s *page.Selection, attributes pcommon.Map) uint64 {
	repeat := e.Lowest
	if s.Row.Fold == families.Highest {
		repeat = nil
	}
	return page.Identity(attributes, repeat...) + uint64(s.Number)*0x9e3779b97f4a7c15
}

// repeated reports whether a series is of a pipeline stage that has the requests of stage 0.
func repeated(e *families.Engine, r *families.Row, attributes pcommon.Map) bool {
	if e.Stage == "" || r.Fold == families.Highest {
		return false
	}
	stage := label(attributes, e.Stage)
	return stage != "" && stage != "0"
}

// ranks are the values of an engine's labels of ranks, which compare in order. One
// without a number is the greatest.
type ranks [families.MaxRanks]int

func lowest(e *families.Engine, row *families.Row, attributes pcommon.Map) (r ranks) {
	if row.Fold == families.Highest {
		return r // of all ranks
	}
	for i, key := range e.Lowest {
		text := label(attributes, key)
		if text == "" {
			continue // one without the label is of all ranks
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			n = math.MaxInt
		}
		r[i] = n
	}
	return r
}

func (r ranks) compare(other ranks) int {
	for i := range r {
		if r[i] != other[i] {
			if r[i] < other[i] {
				return -1
			}
			return 1
		}
	}
	return 0
}
