// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package page // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/page"

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Start is when a series of the page began, as far as the page knows: its own start
// time, that of the family's _created series with the same labels, or that of the
// process. It is 0 where nothing on the page has it.
func (p *Page) Start(family string, attributes pcommon.Map, own, at pcommon.Timestamp) pcommon.Timestamp {
	if own != 0 && own <= at {
		return own
	}
	if len(p.created) > 0 {
		m, ok := p.created[strings.TrimSuffix(family, "_total")]
		if !ok {
			m, ok = p.created[family]
		}
		if ok {
			if points, ok := Numbers(m); ok {
				for _, point := range points.All() {
					if v := Value(point); v > 0 && point.Attributes().Equal(attributes) {
						if start := pcommon.Timestamp(v * 1e9); start <= at {
							return start
						}
					}
				}
			}
		}
	}
	if p.ProcessStart <= at {
		return p.ProcessStart
	}
	return 0
}
