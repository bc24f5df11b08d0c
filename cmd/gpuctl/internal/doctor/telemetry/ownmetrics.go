// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// sample is one row of a collector's own metrics.
type sample struct {
	labels labels.Labels
	value  float64
}

// Metrics are a collector's own metrics by name, without the suffix _total,
// which some configurations add.
type Metrics map[string][]sample

// readOwn reads a page of own metrics.
func readOwn(text []byte, contentType string) (Metrics, error) {
	parser, err := textparse.New(text, contentType, labels.NewSymbolTable(), textparse.ParserOptions{FallbackContentType: "text/plain"})
	if parser == nil {
		return nil, err
	}
	all := Metrics{}
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, v := parser.Series()
		var ls labels.Labels
		parser.Labels(&ls)
		name := strings.TrimSuffix(ls.Get(model.MetricNameLabel), "_total")
		all[name] = append(all[name], sample{ls, v})
	}
}

// sum adds the samples of a metric that the filter keeps.
func (o Metrics) sum(name string, keep func(labels.Labels) bool) float64 {
	sum := 0.0
	for _, s := range o[name] {
		if keep == nil || keep(s.labels) {
			sum += s.value
		}
	}
	return sum
}

// Version is the collector's.
func (o Metrics) Version() string {
	for _, s := range o["target_info"] {
		return s.labels.Get("service_version")
	}
	return ""
}

// distinguishing are the labels in which samples of a metric differ, as text.
func distinguishing(ls labels.Labels) string {
	var parts []string
	ls.Range(func(l labels.Label) {
		if l.Name != model.MetricNameLabel && l.Name != "data_type" && l.Name != "transport" && !strings.HasPrefix(l.Name, "service_") && !strings.HasPrefix(l.Name, "otel_scope_") {
			parts = append(parts, l.Name+"="+l.Value)
		}
	})
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
