// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/prompage"
)

// What passes under the engine's names is byte for byte what came, but for what every
// program has about itself, and for the ends of histograms, which get the bounds of their
// points: a store ends the series that an end names. With raw it is all, with both it stands beside the series of
// the vocabulary.
func TestRawIsWhatCame(t *testing.T) {
	all := simulated(t)
	maps.Copy(all, fromFiles(t))
	for _, names := range []string{"raw", "both"} {
		tr, err := newTranslator(fault{}, map[string]any{"names": names})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, tr.Shutdown(context.Background())) })
		made := 0
		for _, key := range slices.Sorted(maps.Keys(all)) {
			var target prompage.Target
			for i, page := range all[key] {
				md, err := target.Scrape(page, time.Unix(1_790_000_000+int64(10*i), 0))
				require.NoError(t, err)
				md.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.instance.id", key)
				want := pmetric.NewMetrics()
				md.CopyTo(want)
				want.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().RemoveIf(ofEveryProgram)
				rm, err := tr.pass(md)
				require.NoError(t, err)
				rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool {
					if sm.Scope().Name() == scope {
						made++
						return true
					}
					return false
				})
				got := pmetric.NewMetrics()
				rm.CopyTo(got.ResourceMetrics().AppendEmpty())
				withoutBounds(want)
				withoutBounds(got)
				assert.True(t, slices.Equal(marshal(t, want), marshal(t, got)), "%s: %s, page %d", names, key, i)
			}
		}
		assert.Equal(t, names == "both", made > 0, "series of the vocabulary")
	}
}

// withoutBounds takes the buckets and the sum off the ends of histograms.
func withoutBounds(md pmetric.Metrics) {
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		if m.Type() != pmetric.MetricTypeHistogram {
			continue
		}
		for _, p := range m.Histogram().DataPoints().All() {
			if p.Flags().NoRecordedValue() {
				p.BucketCounts().FromRaw(nil)
				p.ExplicitBounds().FromRaw(nil)
				p.RemoveSum()
			}
		}
	}
}

func ofEveryProgram(m pmetric.Metric) bool {
	for _, prefix := range []string{"go_", "python_", "process_"} {
		if strings.HasPrefix(m.Name(), prefix) {
			return true
		}
	}
	return strings.HasSuffix(m.Name(), "_created")
}

func marshal(t *testing.T, md pmetric.Metrics) []byte {
	text, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	return text
}
