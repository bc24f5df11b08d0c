// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
)

// plain are rows of families a to f.
func plain() (rows []families.Row) {
	for i, name := range []string{"a", "b", "c", "d", "e", "f"} {
		rows = append(rows, families.Row{
			Metric: &names.InferenceRequests, From: []string{name}, Attributes: []families.Attribute{{Key: "row", Value: string(rune(i))}},
		})
	}
	return rows
}

func TestWhosePage(t *testing.T) {
	index := families.NewIndex([]*families.Engine{
		{Name: "acme", Prefixes: []string{"acme:"}, Rows: plain()},
		{Name: "shell", Prefixes: []string{"acme:", ""}, Hides: "acme", Rows: plain()},
		{Name: "other", Prefixes: []string{"other_", ""}, Rows: plain()},
		{Name: "router", Prefixes: []string{"acme:"}, Marks: []string{"acme:pods"}, Hides: "acme", Rows: plain()},
	})
	for name, tt := range map[string]struct{ page, hint, want string }{
		"prefix":                        {"acme:a", "", "acme"},
		"nothing that is known":         {"x y", "acme", ""},
		"two engines":                   {"acme:a other_a", "", "acme other"},
		"a mark":                        {"acme:a acme:pods", "", "router"},
		"four without a prefix":         {"a b c d", "", ""},
		"five, which two engines have":  {"a b c d e", "", "shell"},
		"five, of the engine that runs": {"a b c d e", "other", "other"},
		"one, of the engine that runs":  {"a", "shell", "shell"},
		"both of one engine":            {"a b c d e acme:a", "", "shell"},
		"the other's prefix alone":      {"acme:a", "shell", "shell"},
		"another engine's hint":         {"acme:a", "other", "acme"},
	} {
		t.Run(name, func(t *testing.T) {
			rm := pmetric.NewMetrics().ResourceMetrics().AppendEmpty()
			metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
			for _, family := range strings.Fields(tt.page) {
				m := metrics.AppendEmpty()
				m.SetName(family)
				m.SetEmptyGauge().DataPoints().AppendEmpty()
			}
			p := New(index)
			p.Read(rm, tt.hint)
			var got []string
			for i := range p.Engines {
				got = append(got, p.Engines[i].Name)
			}
			assert.Equal(t, tt.want, strings.Join(got, " "))
		})
	}
}
