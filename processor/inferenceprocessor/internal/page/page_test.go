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
	for name, tt := range map[string]struct{ page, hint, want, last string }{
		"prefix":                        {"acme:a", "", "acme", ""},
		"nothing that is known":         {"x y", "acme", "", ""},
		"two engines":                   {"acme:a other_a", "", "acme other", ""},
		"a mark":                        {"acme:a acme:pods", "", "router", ""},
		"four without a prefix":         {"a b c d", "", "", ""},
		"five, which two engines have":  {"a b c d e", "", "shell", ""},
		"five, of the engine that runs": {"a b c d e", "other", "other", ""},
		"one, of the engine that runs":  {"a", "shell", "shell", ""},
		"both of one engine":            {"a b c d e acme:a", "", "shell", ""},
		"the other's prefix alone":      {"acme:a", "shell", "shell", ""},
		"another engine's hint":         {"acme:a", "other", "acme", ""},
		// Families that end in ! have only markers.
		"markers alone":                         {"acme:a! other_a!", "", "acme(ended) other(ended)", ""},
		"markers of the page before":            {"acme:a! b! c! d! e! f!", "", "shell(ended)", "shell"},
		"markers of another engine":             {"acme:a b! c! d! e! f!", "", "acme", "acme"},
		"markers of the engine before":          {"acme:a b! c! d! e! f!", "", "acme shell(ended)", "shell"},
		"a mark that has ended":                 {"acme:a acme:pods!", "", "acme router(ended)", "router"},
		"markers beside what is another's hint": {"acme:a b! c! d! e! f!", "other", "acme", "acme"},
	} {
		t.Run(name, func(t *testing.T) {
			rm := pmetric.NewMetrics().ResourceMetrics().AppendEmpty()
			metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
			for _, family := range strings.Fields(tt.page) {
				m := metrics.AppendEmpty()
				name, ended := strings.CutSuffix(family, "!")
				m.SetName(name)
				m.SetEmptyGauge().DataPoints().AppendEmpty().SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(ended))
			}
			p := New(index)
			p.Read(rm, tt.hint, strings.Fields(tt.last))
			var got []string
			for i := range p.Engines {
				e := &p.Engines[i]
				got = append(got, e.Name+map[bool]string{true: "(ended)"}[e.Ended])
			}
			assert.Equal(t, tt.want, strings.Join(got, " "))
		})
	}
}
