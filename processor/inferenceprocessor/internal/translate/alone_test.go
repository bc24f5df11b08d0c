// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
)

// A metric that a row alone reads is a family of no other row of the engine, whatever its
// name on the page.
func TestAlone(t *testing.T) {
	index := families.NewIndex(families.Engines())
	rows, found := alone(index.Engines), 0
	for i, e := range index.Engines {
		for r := range e.Rows {
			row := &e.Rows[r]
			if !rows[row] {
				continue
			}
			found++
			for _, name := range append([]string{row.With}, row.From...) {
				for _, on := range onPages(e, name) {
					for _, ref := range index.Find(on) {
						for other, source := range index.Sources[i] {
							if ref.Engine == i && ref.Family >= 0 && (source.With == ref.Family || slices.Contains(source.From, ref.Family)) {
								assert.Equal(t, r, other, "%s: %s", e.Name, on)
							}
						}
					}
				}
			}
		}
	}
	assert.Greater(t, found, 100)
}

// onPages are the names that a family may have on a page.
func onPages(e *families.Engine, name string) (all []string) {
	if whole, ok := strings.CutPrefix(name, "="); ok {
		return []string{whole}
	}
	for _, prefix := range e.Prefixes {
		all = append(all, prefix+name, prefix+name+"_total")
	}
	return all
}
