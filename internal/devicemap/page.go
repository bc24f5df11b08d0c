// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"fmt"
	"iter"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
)

// Page is what one scrape of a target gave.
type Page struct {
	Time     pcommon.Timestamp // of all its values
	Up       bool              // false: the scrape failed, and there are no rows
	Duration float64           // of the scrape, in seconds
	Samples  int               // on the page, those that became no row included
	Rows     []Row             // each Series at most once
	Refused  Refused           // samples that the reader of the page refused
	Over     Over              // the limit that the reader found it to be over
	// Limited, of a scrape that failed, is that the exporter refused it because others
	// scrape it as well: it may be up as before.
	Limited bool
}

// Row is a series and its value on one page.
type Row struct {
	Series *Series
	Value  float64
	// Decimal is that the page writes the value with a decimal point.
	Decimal bool
}

// Type is the type on the TYPE line of a family.
type Type uint8

const (
	Gauge Type = iota // untyped families, too
	Counter
	Histogram
	Summary
)

// Family is a family on a page without its rows. Its TYPE and HELP lines
// may come after the rows, and change from page to page.
type Family struct {
	Help string
	Type Type

	name     string
	id       devicetable.ID
	field    *devicetable.Field // nil for a family that is not in the table
	or       *devicetable.Field // the field in the other unit of an ambiguous name
	row      string             // text of its rows, of a field with numbered families
	prefer   uint8              // before other names of the field, see devicetable.Named
	evidence Evidence
	ours     bool // not one of the exporter's process
	dropped  bool
	passed   bool   // known, and in no table
	share    int    // place in an owner's shares, or notShared
	metric   string // the name of a family that is not in the table, "" until it is asked for
	noted    noted
}

// NewFamily returns the family of a name, without TYPE and HELP.
func (v *Vendor) NewFamily(name string) *Family {
	canonical := name
	if v.Family != nil {
		canonical = v.Family(name)
	}
	f := &Family{name: name, share: notShared, ours: v.ours(canonical), dropped: v.Table.Drops(canonical), passed: v.Table.Passes(canonical), evidence: v.evidence(canonical)}
	if n, known := v.Table.Named(canonical); known {
		f.id, f.field, f.or, f.row, f.prefer = n.ID, n.Field, n.Or, n.Row, n.Prefer
		f.share = v.Shares.place(n.ID)
	}
	return f
}

// Labels are the labels of a row. Rows that have the same share one Labels, so that
// the device is read from them once.
type Labels struct {
	all    []label
	row    row
	device *Device // that they were found to be about, nil if not yet
	lesser bool
	points *pointLabels // nil until it is asked for
	texts  []label      // of rows of fields with several labels, by these
	page   uint64       // the last that a survey saw them on
}

type label struct{ key, value string }

// NewLabels reads labels: pairs of key and value, sorted by key, no key twice
// and no value empty.
func (v *Vendor) NewLabels(pairs [][2]string) *Labels {
	l := &Labels{all: make([]label, len(pairs))}
	for i, p := range pairs {
		l.all[i] = label{p[0], p[1]}
	}
	l.row.read(v, l.all)
	l.lesser = v.Lesser != nil && v.Lesser(l)
	return l
}

// All are the labels by their keys, sorted.
func (l *Labels) All() iter.Seq2[string, string] { return pairs(l.all) }

// Get returns a label as the page has it, empty where it is not there.
func (l *Labels) Get(key string) string {
	for i := range l.all {
		if l.all[i].key == key {
			return l.all[i].value
		}
	}
	return ""
}

// rowText is the text of a row of a field, see devicetable.Field.Label. That of several
// labels is put together once.
func (l *Labels) rowText(f *devicetable.Field) string {
	if strings.IndexByte(f.Label, ',') < 0 {
		return l.Get(f.Label)
	}
	for i := range l.texts {
		if l.texts[i].key == f.Label {
			return l.texts[i].value
		}
	}
	text := f.RowText(l.Get)
	l.texts = append(l.texts, label{f.Label, text})
	return text
}

// Series is a family's row with certain labels, whatever its value.
type Series struct {
	family *Family
	labels *Labels
	whole  *Family // that the row belongs to if it is a histogram or a summary
}

// NewSeries returns a series. whole is the family X of a row X_bucket, X_sum or
// X_count, and nil for any other row.
func NewSeries(f *Family, l *Labels, whole *Family) *Series {
	return &Series{family: f, labels: l, whole: whole}
}

// Whole is what NewSeries was given.
func (s *Series) Whole() *Family { return s.whole }

// Name is the name of the series' family.
func (s *Series) Name() string { return s.family.name }

// Ours reports whether the family has one of the vendor's prefixes.
func (s *Series) Ours() bool { return s.family.ours }

// Field is the field of the series' family, if the vendor's table has it.
func (s *Series) Field() (id devicetable.ID, known bool) { return s.family.id, s.family.field != nil }

// Printed is the field of the series' family in the unit that the page has under this
// name, nil for a family that the vendor's table does not have.
func (s *Series) Printed() *devicetable.Field { return s.family.field }

// Labels are the labels of the series by their keys, sorted.
func (s *Series) Labels() iter.Seq2[string, string] { return pairs(s.labels.all) }

func pairs(labels []label) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for _, l := range labels {
			if !yield(l.key, l.value) {
				return
			}
		}
	}
}

// String writes the series as a page does.
func (s *Series) String() string {
	var b strings.Builder
	b.WriteString(s.family.name)
	for i, l := range s.labels.all {
		fmt.Fprintf(&b, "%c%s=%q", "{,"[min(i, 1)], l.key, l.value)
	}
	if len(s.labels.all) > 0 {
		b.WriteByte('}')
	}
	return b.String()
}

// part reports whether the row is a part of a histogram or a summary, which no field
// of a device is: a mistake in the exporter's configuration.
func (s *Series) part() bool {
	switch {
	case s.whole != nil && (s.whole.Type == Histogram || s.whole.Type == Summary):
		return true
	case s.family.Type == Summary:
		return s.labels.Get("quantile") != ""
	default:
		return false
	}
}
