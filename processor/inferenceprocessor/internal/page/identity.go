// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package page // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/page"

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
)

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
