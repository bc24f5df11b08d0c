// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
)

// Page is what one scrape of a target gave.
type Page struct {
	Time     pcommon.Timestamp // of all that it says
	Up       bool              // false: the scrape failed, and there are no rows
	Duration float64           // of the scrape, in seconds
	Samples  int               // on the page, those that became no row included
	Rows     []Row             // each Series at most once
	Refused  Refused           // samples that the reader of the page refused
	Over     Over              // the limit that the reader found it to be over
}

// Row is a series and its value on one page.
type Row struct {
	Series *Series
	Value  float64
}

// Type is what the TYPE line of a family says.
type Type uint8

const (
	Gauge Type = iota // untyped families, too
	Counter
	Histogram
	Summary
)

// Family is what a page says of a family beside its rows. The lines that say so
// may come after the rows, and change from page to page.
type Family struct {
	Help string
	Type Type

	name  string
	id    devicetable.ID
	known bool // id is one of the field table
	dcgm  bool // not one of the exporter's process
	share int  // place in shareFields, or notShared
}

// NewFamily returns the family of a name, without TYPE and HELP.
func NewFamily(name string) *Family {
	f := &Family{name: name, share: notShared, dcgm: strings.HasPrefix(name, "DCGM_") || strings.HasPrefix(name, "dcgm_")}
	if f.id, f.known = devicetable.ByName(name); f.known {
		f.share = sharedOut(f.id)
	}
	return f
}

// Labels are the labels of a row. Rows that have the same share one Labels, so
// that what they say of the device is read once.
type Labels struct {
	all    []label
	row    row
	device *device // that they were found to be about, nil if not yet
}

// NewLabels reads labels: pairs of key and value, sorted by key, no key twice
// and no value empty.
func NewLabels(pairs [][2]string) *Labels {
	l := &Labels{all: make([]label, len(pairs))}
	for i, p := range pairs {
		l.all[i] = label{p[0], p[1]}
	}
	l.row.read(l.all)
	return l
}

func (l *Labels) get(key string) string {
	for i := range l.all {
		if l.all[i].key == key {
			return l.all[i].value
		}
	}
	return ""
}

// Series is a family's row with certain labels, whatever its value.
type Series struct {
	family *Family
	labels *Labels
	whole  *Family // that the row belongs to if it is a histogram or a summary
}

// NewSeries returns a series. whole is the family DCGM_X of a row DCGM_X_bucket,
// DCGM_X_sum or DCGM_X_count, and nil for any other row.
func NewSeries(f *Family, l *Labels, whole *Family) *Series {
	return &Series{family: f, labels: l, whole: whole}
}

// Whole is what NewSeries was given.
func (s *Series) Whole() *Family { return s.whole }

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

// part reports whether the row is a part of a histogram or a summary, which no
// DCGM field is: a mistake in the exporter's counters file.
func (s *Series) part() bool {
	switch {
	case s.whole != nil && (s.whole.Type == Histogram || s.whole.Type == Summary):
		return true
	case s.family.Type == Summary:
		return s.labels.get("quantile") != ""
	default:
		return false
	}
}
