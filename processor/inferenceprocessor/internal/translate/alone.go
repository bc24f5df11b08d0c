// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package translate // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/translate"

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
)

// alone are the rows of which no other row of the engine reads a family: where they are
// written, their points of the page are not needed any more.
func alone(engines []*families.Engine) map[*families.Row]bool {
	rows := map[*families.Row]bool{}
	for _, e := range engines {
		readers := map[string]map[*families.Row]bool{}
		for i := range e.Rows {
			r := &e.Rows[i]
			for _, name := range read(e, r) {
				if readers[name] == nil {
					readers[name] = map[*families.Row]bool{}
				}
				readers[name][r] = true
			}
		}
		for i := range e.Rows {
			r := &e.Rows[i]
			rows[r] = true
			for _, name := range read(e, r) {
				rows[r] = rows[r] && len(readers[name]) == 1
			}
		}
	}
	return rows
}

// read are the families that a row reads, by names that are the same for all that may be
// one metric on a page.
func read(e *families.Engine, r *families.Row) (all []string) {
	for _, name := range append([]string{r.With}, r.From...) {
		if whole, ok := strings.CutPrefix(name, "="); ok {
			name = whole
			for _, prefix := range e.Prefixes {
				if rest, ok := strings.CutPrefix(whole, prefix); ok && prefix != "" {
					name = rest
				}
			}
		}
		if name != "" {
			all = append(all, strings.TrimSuffix(name, "_total"))
		}
	}
	return all
}

// source has the labels of a point of the page, of which values may be taken.
type source struct {
	pcommon.Map
	take bool
}

// put writes a text that is not empty, and that mostly is the value of one of these
// labels.
func (l source) put(to pcommon.Map, key, text string, names ...string) {
	if text == "" {
		return
	}
	if l.take {
		for _, name := range names {
			if v, ok := l.Get(name); ok && v.Type() == pcommon.ValueTypeStr && v.Str() == text {
				v.MoveTo(to.PutEmpty(key))
				return
			}
		}
	}
	to.PutStr(key, text)
}

// buckets copies bounds and buckets, or takes them, and returns how many were taken.
func buckets(to, from pmetric.HistogramDataPoint, take bool) removal {
	if !take {
		from.ExplicitBounds().CopyTo(to.ExplicitBounds())
		from.BucketCounts().CopyTo(to.BucketCounts())
		return 0
	}
	from.ExplicitBounds().MoveTo(to.ExplicitBounds())
	from.BucketCounts().MoveTo(to.BucketCounts())
	return removal(to.BucketCounts().Len())
}
