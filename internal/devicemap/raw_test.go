// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// judged is what is known of the fields of a page: the unknown ones with what they may be, and
// gpu.exporter.unrecognized.
func judged(t *Target, page string) string {
	rows := []Row{}
	for _, text := range strings.Fields(page) {
		family, loose := strings.CutPrefix(text, "-")
		family, blank := strings.CutSuffix(family, "=")
		labels, v := [][2]string{{"serial", "1"}}, 1.
		if loose {
			labels = nil
		}
		if blank {
			v = 65535
		}
		rows = append(rows, Row{NewSeries(t.vendor.NewFamily(family), t.vendor.NewLabels(labels), nil), v, false})
	}
	r := t.Map(&Page{Time: pcommon.Timestamp(t.page.number+1) * 1e9, Up: page != "", Rows: rows, Samples: len(rows)}, Exporter{Address: "a"})
	var out []string
	for _, u := range r.Unknown {
		out = append(out, u.Field+":"+u.Like)
	}
	for _, m := range r.Metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		if m.Name() == names.ExporterUnrecognized.Name {
			out = append(out, fmt.Sprint(m.Sum().DataPoints().At(0).IntValue()))
		}
	}
	return strings.Join(out, " ")
}

// Families with a - are about no device, those with = have no value.
func TestUnknownFields(t *testing.T) {
	for name, tt := range map[string]struct{ pages, want []string }{
		"known":                                {[]string{"acme_load acme_power"}, []string{"0"}},
		"other fields beside":                  {[]string{"acme_load acme_power acme_fan acme_load_max acme_loads"}, []string{"0"}},
		"one is renamed":                       {[]string{"acme_load acme_power_watts"}, []string{"acme_power_watts:acme_power 0"}},
		"one is missing, and others are other": {[]string{"acme_load acme_fan"}, []string{"0"}},
		"one is there without a value":         {[]string{"acme_load acme_power= acme_power_watts"}, []string{"0"}},
		"all are renamed":                      {[]string{"acme_load_ratio acme_power_watts acme_fan"}, []string{"acme_load_ratio:acme_load acme_power_watts:acme_power acme_fan: 1"}},
		"none is like a known one":             {[]string{"acme_fan"}, []string{"acme_fan: 1"}},
		"none is of a device":                  {[]string{"-acme_fan -acme_load_ratio"}, []string{""}},
		"an unknown one of no device":          {[]string{"acme_load -acme_power_watts"}, []string{"0"}},
		"one that is known":                    {[]string{"acme_load acme_power_instant"}, []string{"0"}},
		"a dropped one":                        {[]string{"acme_load acme_power_threshold"}, []string{"0"}},
		"no field of the three":                {[]string{"acme_temperature"}, []string{"acme_temperature: 1"}},
		"no value, known":                      {[]string{"acme_load= acme_temperature"}, []string{"0"}},
		"renamed, and back": {
			[]string{"acme_load", "acme_load_v2", "", "acme_load_v2", "acme_load"},
			[]string{"0", "acme_load_v2:acme_load 1", "", "acme_load_v2:acme_load 1", "0"},
		},
		"the fields in another order": {[]string{"acme_x acme_load_v2", "acme_load_v2 acme_x"}, []string{"acme_load_v2:acme_load acme_x: 1", "acme_load_v2:acme_load acme_x: 1"}},
		"a device that fails":         {[]string{"acme_load acme_power acme_error", "acme_load= acme_error"}, []string{"0", "0"}},
		"a value after pages without": {[]string{"acme_load_v2= acme_x=", "acme_load_v2 acme_x"}, []string{"", "acme_load_v2:acme_load acme_x: 1"}},
	} {
		target := NewTarget(&acme, Options{OTel: true})
		var got []string
		for _, page := range tt.pages {
			got = append(got, judged(target, page))
		}
		assert.Equal(t, tt.want, got, name)
	}
	assert.Empty(t, judged(NewTarget(&acme, Options{OTel: true, OwnPage: true}), "acme_load_v2"), "a page of our own has no other names")

	target := NewTarget(&acme, Options{OTel: true})
	var many []string
	for i := range 3 * maxUnknown {
		many = append(many, fmt.Sprintf("acme_x%04d", i))
	}
	assert.Len(t, strings.Fields(judged(target, strings.Join(many, " "))), maxUnknown+1)
}
