// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package prompage // import "github.com/otelcol-gpu/otelcol-gpu/internal/prompage"

import (
	"time"

	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Target is a page that is scraped again and again. A series that was on the page before
// and is not now has a marker, a point without a value. The zero value has not been
// scraped.
type Target struct {
	described map[string]described
	last      []series
}

// Scrape is what a scrape of the page at a time gives, up included; of what the scraper
// reports about itself there is nothing more. A nil page is one that could not be had.
// The metrics are the caller's.
func (t *Target) Scrape(page []byte, at time.Time) (pmetric.Metrics, error) {
	if t.described == nil {
		t.described = map[string]described{}
	}
	md, metrics := one()
	r := newReader(t.described)
	all, err := r.read(page)
	if err != nil {
		return md, err
	}
	there := make(map[uint64]bool, len(all))
	for _, s := range all {
		there[s.hash] = true
	}
	for _, s := range t.last {
		if !there[s.hash] {
			r.end(s.labels)
		}
	}
	t.last = all
	now := pcommon.NewTimestampFromTime(at)
	r.write(metrics, now)
	up := metrics.AppendEmpty()
	describe(up, "up", described{model.MetricTypeGauge, "The scraping was successful"})
	p := up.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(now)
	p.SetDoubleValue(1)
	if page == nil {
		p.SetDoubleValue(0)
	}
	return md, nil
}
