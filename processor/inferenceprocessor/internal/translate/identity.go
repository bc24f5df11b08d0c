// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package translate // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/translate"

import (
	"math"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
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

func (t *reader) subject(e *families.Engine, r *families.Row, attributes pcommon.Map) subject {
	s := subject{model: t.model}
	for _, key := range e.Model {
		if m := label(attributes, key); m != "" {
			s.model = m
			break
		}
	}
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

// key is a hash of a series of the engine: the row's number, the subject, and the
// further labels that are kept.
func (t *reader) key(e *families.Engine, number int, s *subject, attributes pcommon.Map) uint64 {
	var room [200]byte
	text := append(room[:0], byte(number), byte(number>>8))
	for _, part := range [...]string{e.Name, s.model, s.rank, s.outcome, s.words[0], s.words[1], s.words[2]} {
		text = append(append(text, part...), 0)
	}
	for _, key := range t.o.Attributes {
		text = append(append(text, label(attributes, key)...), 0)
	}
	return xxhash.Sum64(text)
}

// ranks are the values of an engine's labels of ranks, which compare in order. One
// without a number is the greatest.
type ranks [families.MaxRanks]int

func lowest(e *families.Engine, attributes pcommon.Map) (r ranks) {
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
