// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package foreignpage attributes pages of exporters that another program scraped: it
// takes them apart into one resource a device.
package foreignpage

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/replica"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/seriesend"
)

// Processor attributes pages. It is not safe for concurrent use.
type Processor struct {
	Join     *identity.Join
	Tracker  *seriesend.Tracker
	Replicas *replica.Writer

	page  page  // scratch, kept between pages
	split split // scratch, kept between pages
}

// Process attributes the devices of the page in rm, if there are any, and appends their
// resources and the ends of series to out. What is left in rm is not about a device.
// refused are the devices that there is no room to remember.
func (p *Processor) Process(rm pmetric.ResourceMetrics, now time.Time, out pmetric.ResourceMetricsSlice) (done seriesend.Counts, refused int, any bool) {
	if !p.page.read(rm, p.Join, now) {
		return done, 0, false
	}
	p.split.run(&p.page, p.Tracker, rm, out)
	for _, g := range p.split.groups {
		d := &p.page.devices[g.device]
		done.Add(p.Tracker.Observe(d.id, g.owner, d.source, nil, g.rm, points.ContentsOf(g.rm), now, out))
		if g.owner == d.owner {
			done.Add(p.Replicas.Write(d.id, d.fact, pcommon.Slice{}, g.rm, now, out))
		}
	}
	return done, p.page.refused, true
}
