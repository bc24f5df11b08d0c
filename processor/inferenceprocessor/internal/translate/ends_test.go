// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/seriesends/endstest"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/series"
)

// The end of each series reaches a store, whatever the series is made of and however many bounds
// of it are left out.
func TestEndsReachAStore(t *testing.T) {
	for name, tt := range map[string]struct {
		o     Options
		pages []string
	}{
		"histogram":                   {Options{}, []string{"acme:e2e_ms h 3 1500 100:1,500:2", "acme:e2e_ms h END"}},
		"of another page's bounds":    {Options{}, []string{"acme:e2e_ms h 3 1500 100:1,500:2", "acme:e2e_ms h 3 1500 100:1,700:2", "acme:e2e_ms h END"}},
		"of two bounds on one page":   {Options{}, []string{"acme:e2e_ms{model=a} h 3 1500 100:1,500:2\nacme:e2e_ms{model=b} h 3 1500 100:1,700:2", "acme:e2e_ms{model=a} h END\nacme:e2e_ms{model=b} h END"}},
		"of bounds that are left out": {Options{MaxBounds: 3}, []string{"acme:e2e_ms h 6 1500 100:1,200:2,300:3,400:4,500:5", "acme:e2e_ms h END"}},
		"of several sources":          {Options{}, []string{"acme:e2e_ms{pod=a} h 3 1500 100:1,500:2\nacme:e2e_ms{pod=b} h 3 1500 100:1,500:2", "acme:e2e_ms{pod=a} h END\nacme:e2e_ms{pod=b} h END"}},
		"without bounds":              {Options{}, []string{"acme:queue_us{} 7\nacme:done 2", "acme:queue_us END\nacme:done END"}},
		"gauge and counter":           {Options{}, []string{"acme:running 1\nacme_new_tokens_total 7", "acme:running END\nacme_new_tokens_total END"}},
		"both names":                  {Options{Raw: true}, []string{"acme:e2e_ms h 3 1500 100:1,500:2", "acme:e2e_ms h END 100:0,500:0"}},
		"a family of no row":          {Options{}, []string{"acme:running 1\nacme:other h 3 1500 100:1,500:2", "acme:running END\nacme:other h END 100:0,500:0"}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.o.Normalised, tt.o.MaxModels, tt.o.Series = true, 3, series.NewBudget(100)
			tt.o.MaxBounds = max(tt.o.MaxBounds, 3)
			tr := New(families.NewIndex([]*families.Engine{acme()}), tt.o)
			var batches []pmetric.Metrics
			for i, lines := range tt.pages {
				now := time.Unix(1000+int64(15*i), 0)
				clock = pcommon.NewTimestampFromTime(now)
				md := pmetric.NewMetrics()
				rm := md.ResourceMetrics().AppendEmpty()
				pageOf(lines).MoveTo(rm)
				tr.Page(rm, 1, now)
				batches = append(batches, md)
			}
			endstest.Ended(t, batches...)
		})
	}
}
