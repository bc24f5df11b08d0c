// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package page // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/page"

import (
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
)

// begins notes when the series of a family began, by its _created series.
func (p *Page) begins(family string, m pmetric.Metric) {
	points, ok := Numbers(m)
	if !ok {
		return
	}
	id := xxhash.Sum64String(family)
	for _, point := range points.All() {
		if v := Value(point); v > 0 {
			p.starts[id+Identity(point.Attributes())] = pcommon.Timestamp(v * 1e9)
		}
	}
}

// Start is when a series of the page began, as far as the page knows: its own start
// time, that of the family's _created series with the same labels, or that of the
// process. It is 0 where nothing on the page has it.
func (p *Page) Start(family string, attributes pcommon.Map, own, at pcommon.Timestamp) pcommon.Timestamp {
	if own != 0 && own <= at {
		return own
	}
	if len(p.starts) > 0 {
		id := Identity(attributes)
		start, ok := p.starts[xxhash.Sum64String(strings.TrimSuffix(family, "_total"))+id]
		if !ok {
			start = p.starts[xxhash.Sum64String(family)+id]
		}
		if start != 0 && start <= at {
			return start
		}
	}
	if p.ProcessStart <= at {
		return p.ProcessStart
	}
	return 0
}

// Identity is a hash of attributes in any order, without some of them.
func Identity(attributes pcommon.Map, without ...string) (id uint64) {
	for k, v := range attributes.All() {
		switch {
		case slices.Contains(without, k):
		case v.Type() == pcommon.ValueTypeStr:
			id += families.Pair(k, v.Str())
		default:
			id += families.Pair(k, v.AsString())
		}
	}
	return id
}
