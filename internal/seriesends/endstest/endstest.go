// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package endstest checks that the ends of series reach a store.
package endstest // import "github.com/otelcol-gpu/otelcol-gpu/internal/seriesends/endstest"

import (
	"fmt"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheusremotewrite"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// Ended requires that every series that a Prometheus store makes of the batches has ended with
// the last point of it, and that there is one. The batches stay as they are.
func Ended(t testing.TB, batches ...pmetric.Metrics) {
	t.Helper()
	type sample struct {
		at    int64
		ended bool
	}
	last := map[string]sample{}
	note := func(ts *prompb.TimeSeries, at int64, ended bool) {
		series := fmt.Sprint(ts.Labels)
		if was, known := last[series]; !known || at >= was.at {
			last[series] = sample{at, ended}
		}
	}
	for _, md := range batches {
		own := pmetric.NewMetrics()
		md.CopyTo(own)
		identify(own)
		series, err := prometheusremotewrite.FromMetrics(own, prometheusremotewrite.Settings{
			TranslationStrategy: "UnderscoreEscapingWithSuffixes", AddMetricSuffixes: true, DisableTargetInfo: true, DisableScopeInfo: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, ts := range series {
			for _, s := range ts.Samples {
				note(ts, s.Timestamp, value.IsStaleNaN(s.Value))
			}
			for _, h := range ts.Histograms {
				note(ts, h.Timestamp, value.IsStaleNaN(h.Sum))
			}
		}
	}
	if len(last) == 0 {
		t.Error("there are no series")
	}
	for series, s := range last {
		if !s.ended {
			t.Errorf("goes on: %s", series)
		}
	}
}

// identify gives the points the attributes of their resource, which the shipped configurations
// make labels.
func identify(md pmetric.Metrics) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				points.Each(m, func(attrs pcommon.Map, _ pcommon.Timestamp, _ bool) {
					for k, v := range rm.Resource().Attributes().All() {
						v.CopyTo(attrs.PutEmpty("resource." + k))
					}
				})
			}
		}
	}
}
