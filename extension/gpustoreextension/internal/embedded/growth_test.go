// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

func TestGrowth(t *testing.T) {
	replace := func(levels int, text string) string {
		query := "up"
		for range levels {
			query = `label_replace(` + query + `, "job", "` + text + `", "job", "(.*)")`
		}
		return query
	}
	for name, test := range map[string]struct {
		query   string
		refused bool
	}{
		"none":                             {"sum by (job) (rate(up[5m]))", false},
		"a constant":                       {`label_replace(up, "of", "name", "", "")`, false},
		"a copy of each of ten labels":     {replace(10, "$1"), false},
		"five levels, tenfold":             {replace(5, strings.Repeat("$1", 10)), true},
		"so many levels that it overflows": {replace(200, strings.Repeat("$1", 20)), true},
		"a long constant":                  {replace(1, strings.Repeat("x", 5000)), true},
		"many constants":                   {replace(100, strings.Repeat("x", 50)), true},
		"a join":                           {`label_join(up, "x", "-", "a", "b", "c")`, false},
		"joins of joins":                   {`label_join(label_join(up, "x", "-", "a", "b", "c", "d", "e"), "y", "-", "x", "x", "x", "x")`, true},
		"on both sides":                    {replace(1, strings.Repeat("$1", 9)) + " + on (instance) " + replace(1, strings.Repeat("$1", 9)), true},
		"within functions":                 {`sum(max_over_time((` + replace(2, strings.Repeat("$1", 9)) + `)[5m:1m]))`, true},
		"names of groups":                  {`label_replace(up, "x", "` + strings.Repeat("${a}", 17) + `", "job", "(?P<a>.*)")`, true},
	} {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(test.query)
		require.NoError(t, err, name)
		assert.Equal(t, test.refused, checkGrowth(expr) != nil, name)
	}

	w := open(t, t.TempDir(), nil)
	_, err := w.Instant(t.Context(), replace(5, strings.Repeat("$1", 10)), begin)
	assert.ErrorContains(t, err, "nest fewer of them")
	var refused *store.Error
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, store.BadQuery, refused.Kind)
}
