// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package prompage

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

var now = time.Unix(1_790_000_000, 0)

// text writes the points of a scrape but up, one a line.
func text(md pmetric.Metrics) []string {
	var out []string
	add := func(m pmetric.Metric, attributes pcommon.Map, start pcommon.Timestamp, flags pmetric.DataPointFlags, values ...any) {
		line := m.Name() + strings.TrimPrefix(fmt.Sprint(attributes.AsRaw()), "map") + " " + fmt.Sprint(values...)
		if start != 0 {
			line += fmt.Sprint(" since ", start.AsTime().Unix())
		}
		if flags.NoRecordedValue() {
			line += " END"
		}
		out = append(out, strings.Replace(line, "[] ", " ", 1))
	}
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		switch m.Type() {
		case pmetric.MetricTypeHistogram:
			for _, p := range m.Histogram().DataPoints().All() {
				add(m, p.Attributes(), p.StartTimestamp(), p.Flags(), p.Count(), p.Sum(), p.HasSum(), p.ExplicitBounds().AsRaw(), p.BucketCounts().AsRaw())
			}
		case pmetric.MetricTypeSummary:
			for _, p := range m.Summary().DataPoints().All() {
				add(m, p.Attributes(), p.StartTimestamp(), p.Flags(), p.Count(), p.Sum(), p.QuantileValues().Len())
			}
		case pmetric.MetricTypeExponentialHistogram:
			for _, p := range m.ExponentialHistogram().DataPoints().All() {
				add(m, p.Attributes(), p.StartTimestamp(), p.Flags(), "exponential")
			}
		case pmetric.MetricTypeSum:
			for _, p := range m.Sum().DataPoints().All() {
				add(m, p.Attributes(), p.StartTimestamp(), p.Flags(), p.DoubleValue(), m.Sum().IsMonotonic())
			}
		default:
			for _, p := range m.Gauge().DataPoints().All() {
				if m.Name() != "up" || p.DoubleValue() != 1 {
					add(m, p.Attributes(), p.StartTimestamp(), p.Flags(), p.DoubleValue())
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestTarget(t *testing.T) {
	const h = "# TYPE h histogram\n"
	for name, tt := range map[string]struct {
		pages []string // "" is one that fails
		want  [][]string
	}{
		"a series that is gone ends once": {
			[]string{"a{x=\"1\"} 1\na{x=\"2\",y=\"\"} 2", "a{x=\"2\"} 3", "a{x=\"2\"} 3"},
			[][]string{{"a[x:1] 1", "a[x:2] 2"}, {"a[x:1] 0 END", "a[x:2] 3"}, {"a[x:2] 3"}},
		},
		"a page that fails ends all": {
			[]string{"# TYPE c counter\nc 1\n" + h + "h_bucket{le=\"1\"} 1\nh_count 2\nh_sum 3", "", "", "c 2"},
			[][]string{{"c 1 true", "h 2 3 true [1] [1 1]"}, {"c 0 true END", "h 0 0 false [1] [0 0] END", "up 0"}, {"up 0"}, {"c 2 true"}},
		},
		"bounds that change leave buckets of the old ones behind": {
			[]string{h + "h_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_count 2\nh_sum 3", h + "h_bucket{le=\"2\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_count 2\nh_sum 3"},
			[][]string{{"h 2 3 true [1] [1 1]"}, {fmt.Sprintf("h 2 3 true [1 2] [%d %d 1]", bucketOf(math.NaN()), bucketOf(math.NaN()))}},
		},
		"a histogram has a count, and may have no sum and a start": {
			[]string{h + "h_bucket{le=\"1\"} 1", h + "h_bucket{le=\"1\"} 1\nh_count 3\nh_created 1.7e9\n"},
			[][]string{nil, {"h 3 0 false [1] [1 2] since 1700000000"}},
		},
		"a bucket without a bound is none": {
			[]string{h + "h_bucket 1\nh_bucket{le=\"x\"} 1\nh_count 3\nh_sum 4"},
			[][]string{{"h 3 4 true [] [3]"}},
		},
		"the name of a histogram itself": {
			[]string{h + "h{le=\"1\"} 1", h},
			[][]string{nil, {"h exponential END"}},
		},
		"a counter's start is on no page of the text format": {
			[]string{"# TYPE c counter\nc 1\nc_created 5\n# TYPE d_total counter\nd_total 1\n# TYPE d_created gauge\nd_created 5"},
			[][]string{{"c 1 true", "d_created 5", "d_total 1 true"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var target Target
			for i, page := range tt.pages {
				var lines []byte
				if page != "" {
					lines = []byte(page)
				}
				md, err := target.Scrape(lines, now)
				require.NoError(t, err)
				assert.Equal(t, tt.want[i], text(md), "page %d", i)
			}
		})
	}
}

// bucketOf is what a bucket becomes: without a sign or a number it is another on other
// processors.
func bucketOf(v float64) uint64 { return uint64(v) }

func TestALineThatIsNotOfTheFormat(t *testing.T) {
	_, err := Read([]byte("a 1\nb{x=1} 2\n"), now)
	assert.ErrorContains(t, err, "page: ")
	var target Target
	_, err = target.Scrape([]byte("a 0x1p"), now)
	assert.ErrorContains(t, err, "page: ")
}

// The odd page is in testbed/inference compared with what the receiver makes of it.
func TestOddPage(t *testing.T) {
	page, err := os.ReadFile("testdata/odd.prom")
	require.NoError(t, err)
	md, err := Read(page, now)
	require.NoError(t, err)
	assert.Contains(t, text(md), fmt.Sprintf("falling 3 4 true [1 2] [3 %d 2]", bucketOf(-2)))
	assert.Contains(t, text(md), "ended 1 1 true [1] [1 0] since 1700000000")
}
