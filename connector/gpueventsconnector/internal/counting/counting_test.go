// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// TestTake: each line is one page: its time is its place, and -1 is one without the count.
func TestTake(t *testing.T) {
	type page struct {
		start int // 0: since this page
		value float64
		by    float64
		twice bool
	}
	const none = -1
	for name, tt := range map[string]struct {
		derived bool
		pages   []page
	}{
		"it rises":                                 {pages: []page{{1, 3, 0, false}, {1, 3, 0, false}, {1, 5, 2, false}}},
		"reset, without a start of its own":        {pages: []page{{1, 3, 0, false}, {1, 0, 0, false}, {1, 1, 1, false}}},
		"the reader was restarted":                 {pages: []page{{1, 3, 0, false}, {0, 3, 0, false}, {2, 3, 0, false}, {2, 4, 1, false}}},
		"and its first page was lost":              {pages: []page{{1, 3, 0, false}, {2, 3, 0, false}, {2, 3, 0, false}}},
		"the reader was restarted, and it rose":    {pages: []page{{1, 3, 0, false}, {0, 5, 2, false}, {2, 5, 0, false}}},
		"the exporter was restarted":               {pages: []page{{1, 3, 0, false}, {0, 1, 0, false}, {2, 1, 1, false}, {2, 2, 1, false}}},
		"the node: absent, and as high as before":  {pages: []page{{1, 1, 0, false}, {1, none, 0, false}, {2, 1, 1, false}, {2, 1, 0, false}}},
		"a page without it is no restart":          {pages: []page{{1, 1, 0, false}, {1, none, 0, false}, {1, 1, 0, false}}},
		"absent, and it may be an old one":         {pages: []page{{1, 1, 0, false}, {1, none, 0, false}, {0, 1, 0, false}, {3, 1, 0, false}}},
		"two exporters with the same count":        {pages: []page{{1, 3, 0, false}, {2, 3, 0, false}, {1, 3, 0, false}, {2, 3, 0, true}, {1, 3, 0, false}, {2, 3, 0, true}, {1, 4, 0, false}, {2, 4, 1, true}, {1, 4, 0, false}}},
		"one of them is younger":                   {pages: []page{{1, 3, 0, false}, {2, 1, 0, false}, {1, 3, 0, true}, {2, 1, 0, false}, {1, 3, 0, true}, {2, 2, 0, false}, {1, 4, 1, true}}},
		"the younger one goes on alone":            {pages: []page{{1, 3, 0, false}, {2, 1, 0, false}, {1, 3, 0, true}, {2, 2, 0, false}, {2, 2, 1, false}, {2, 3, 1, false}}},
		"the elder comes back":                     {pages: []page{{1, 3, 0, false}, {2, 3, 0, false}, {2, 4, 1, false}, {1, 4, 0, false}, {2, 4, 0, true}}},
		"its clock was set back":                   {pages: []page{{3, 3, 0, false}, {1, 3, 0, false}, {1, 3, 0, false}, {1, 4, 1, false}}},
		"derived: the reader counts from 0":        {derived: true, pages: []page{{1, 2, 0, false}, {1, none, 0, false}, {2, 1, 1, false}, {2, 1, 0, false}}},
		"derived: and its pages before were lost":  {derived: true, pages: []page{{1, 2, 0, false}, {2, 2, 0, false}, {2, 2, 2, false}, {2, 3, 1, false}}},
		"derived: two exporters, of the same XIDs": {derived: true, pages: []page{{1, 1, 0, false}, {2, 1, 0, false}, {1, 1, 0, true}, {2, 1, 0, false}, {1, 2, 1, true}, {2, 2, 0, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			var s Series
			for i, p := range tt.pages {
				if p.value == none {
					s.Missing()
					continue
				}
				r := Reading{Value: p.value, Start: at(p.start), At: at(i + 1), Derived: tt.derived}
				if p.start == 0 {
					r.Start = r.At
				}
				by, twice := s.Take(r, false)
				assert.Equal(t, p.by, by, "page %d", i+1)
				assert.Equal(t, p.twice, twice, "page %d", i+1)
			}
		})
	}
	var s Series
	by, _ := s.Take(Reading{Value: 2}, true)
	assert.Equal(t, 2., by, "it was 0")
	by, _ = s.Take(Reading{Value: 7, Derived: true}, true)
	assert.Zero(t, by, "another count")
	assert.Equal(t, 3., s.Add(3))
	by, _ = s.Take(Reading{Value: 7}, false)
	assert.Zero(t, by, "a delta says nothing of the count")
}

func at(page int) pcommon.Timestamp { return pcommon.Timestamp(page) * 15e9 }
