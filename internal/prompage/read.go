// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package prompage makes of a page in Prometheus' text format what the Prometheus
// receiver makes of it, without a server, a client and their clocks: for tests. That
// both give the same points is a test in testbed/inference.
package prompage // import "github.com/otelcol-gpu/otelcol-gpu/internal/prompage"

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Read reads a page of the text format that was scraped at a time, into one scope of one
// resource. A family keeps its name on the page; one without a type is a gauge. The
// error is about a line that is not of the format.
func Read(page []byte, at time.Time) (pmetric.Metrics, error) {
	r := newReader(map[string]described{})
	_, err := r.read(page)
	md, metrics := one()
	r.write(metrics, pcommon.NewTimestampFromTime(at))
	return md, err
}

// one is a resource with one scope.
func one() (pmetric.Metrics, pmetric.MetricSlice) {
	md := pmetric.NewMetrics()
	return md, md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
}

// described is what a page has about a name.
type described struct {
	kind model.MetricType
	help string
}

// reader collects the samples of a page by family.
type reader struct {
	described map[string]described
	families  []*family
	byName    map[string]*family
	buffer    []byte
}

func newReader(d map[string]described) *reader {
	return &reader{described: d, byName: map[string]*family{}}
}

// series is one of a page.
type series struct {
	labels labels.Labels
	hash   uint64
}

// read adds the samples of a page, and returns their series.
func (r *reader) read(page []byte) (all []series, err error) {
	p := textparse.NewPromParser(append(slices.Clone(page), '\n'), labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("page: %w", err)
		}
		switch entry {
		case textparse.EntryType:
			name, kind := p.Type()
			r.described[string(name)] = described{kind, r.described[string(name)].help}
		case textparse.EntryHelp:
			name, text := p.Help()
			r.described[string(name)] = described{r.described[string(name)].kind, string(text)}
		case textparse.EntrySeries:
			var l labels.Labels
			p.Labels(&l)
			l = l.WithoutEmpty()
			_, _, v := p.Series()
			if r.sample(l, v) {
				all = append(all, series{l, l.Hash()})
			}
		}
	}
}
