// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inferenceprocessor

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/series"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/translate"
)

// What the families become is the same whether they pass as well or not; and what passes
// is as it was on the page, also where there is room for a few series only.
func TestPassesAsItCame(t *testing.T) {
	pages, err := filepath.Glob("testdata/*/*.prom")
	require.NoError(t, err)
	at := time.Unix(2_000_000_000, 0)
	index := families.NewIndex(families.Engines())
	for _, path := range pages {
		for _, room := range []int{10_000, 3} {
			became := func(raw bool) (made []string) {
				rm := read(t, path, at)
				before := pointsOf(read(t, path, at).ScopeMetrics().At(0).Metrics())
				tr := translate.New(index, translate.Options{Normalised: true, Raw: raw, MaxBounds: 64, Series: series.NewBudget(room), MaxModels: 100})
				tr.Page(rm, 1, at)
				scopes := rm.ScopeMetrics()
				passed := pointsOf(scopes.At(0).Metrics())
				if raw {
					assert.Equal(t, engines(before), passed, path)
				}
				assert.Subset(t, before, passed, path)
				if scopes.Len() > 1 {
					made = pointsOf(scopes.At(1).Metrics())
				}
				return made
			}
			assert.Equal(t, became(true), became(false), path)
		}
	}
}

// engines leaves out what every program has, which never passes.
func engines(points []string) []string {
	return slices.DeleteFunc(slices.Clone(points), func(p string) bool {
		return own.MatchString(p)
	})
}

var own = regexp.MustCompile(`^((go|python|process)_|\S+_created )`)

// pointsOf is all that metrics have, as text.
func pointsOf(metrics pmetric.MetricSlice) (lines []string) {
	add := func(m pmetric.Metric, attributes pcommon.Map, figures ...any) {
		lines = append(lines, fmt.Sprint(m.Name(), " ", attributes.AsRaw(), figures))
	}
	for _, m := range metrics.All() {
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			for _, p := range m.Gauge().DataPoints().All() {
				add(m, p.Attributes(), p.DoubleValue(), p.IntValue())
			}
		case pmetric.MetricTypeSum:
			for _, p := range m.Sum().DataPoints().All() {
				add(m, p.Attributes(), p.DoubleValue(), p.IntValue(), p.StartTimestamp())
			}
		case pmetric.MetricTypeHistogram:
			for _, p := range m.Histogram().DataPoints().All() {
				add(m, p.Attributes(), p.Count(), p.Sum(), p.ExplicitBounds().AsRaw(), p.BucketCounts().AsRaw(), p.StartTimestamp())
			}
		}
	}
	return lines
}
