// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package exporters knows the exporters that print devices, and whether they
// still do: of two that print the same device, the one that had it first decides
// for as long as it does.
package exporters

import (
	"net"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	// maxExporters bounds what is remembered. One beyond it is unknown, and the
	// duplicates that it prints go unnoticed.
	maxExporters = 10_000
	// maxSilence is how long a silent exporter is remembered.
	maxSilence = 10 * time.Minute
	// minSlack is how late a page may be, however short the interval.
	minSlack = 2 * time.Second
	// repeatAfter is how long two exporters must not have printed the same device until
	// that is news again.
	repeatAfter = 10 * time.Minute
)

// Exporter is one exporter, as its receiver names it.
type Exporter struct {
	Name string // host:port, or a name without port

	up       bool
	frozen   bool              // it answers with values that stand still
	at       pcommon.Timestamp // of its newest page
	every    time.Duration     // between its two newest pages, 0 with one
	lastSeen time.Time

	owner      *Exporter // of devices that this one printed too,
	duplicated time.Time // and when it last did
}

// Set remembers exporters. It is not safe for concurrent use.
type Set struct {
	known map[key]*Exporter
	first time.Duration // how long the first page of an exporter counts
}

type key struct{ cluster, node, address, port string }

// name is host:port, and without a port that of a source on the node itself, as nvml is.
func (k key) name() string {
	if k.port == "" {
		return k.address
	}
	return net.JoinHostPort(k.address, k.port)
}

// NewSet returns a Set that trusts the first page of an exporter, which does not
// show its interval, for as long as that.
func NewSet(first time.Duration) *Set {
	return &Set{known: map[key]*Exporter{}, first: first}
}

// Learn takes in what a batch states of its exporter. It returns nil where there
// is none or more than one: then no device can be assigned to it. Resources of
// devices are passed over.
func (s *Set) Learn(all pmetric.ResourceMetricsSlice, device func(i int) bool, now time.Time) (found *Exporter) {
	any, several := false, false
	for i := range all.Len() {
		if device(i) {
			continue
		}
		rm := all.At(i)
		if _, ok := rm.Resource().Attributes().Get(names.ServerAddress); !ok {
			continue
		}
		up, ok := point(rm, names.ExporterUp.Name)
		if !ok {
			continue
		}
		still, ok := point(rm, names.ExporterFrozen.Name)
		e := s.learn(rm.Resource().Attributes(), up, now)
		if e != nil {
			e.frozen = ok && on(still)
		}
		several = several || any && e != found
		found, any = e, true
	}
	if several {
		return nil
	}
	return found
}

// point is the point of a metric about the exporter.
func point(rm pmetric.ResourceMetrics, metric string) (pmetric.NumberDataPoint, bool) {
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			if m.Name() == metric && m.Type() == pmetric.MetricTypeSum && m.Sum().DataPoints().Len() > 0 {
				return m.Sum().DataPoints().At(0), true
			}
		}
	}
	return pmetric.NumberDataPoint{}, false
}

// on reports whether a point has a value, which is not 0.
func on(p pmetric.NumberDataPoint) bool {
	return !p.Flags().NoRecordedValue() && (p.IntValue() != 0 || p.DoubleValue() != 0)
}

func (s *Set) learn(attrs pcommon.Map, up pmetric.NumberDataPoint, now time.Time) *Exporter {
	k := keyOf(attrs)
	e := s.known[k]
	if e == nil {
		if len(s.known) >= maxExporters {
			return nil
		}
		e = &Exporter{Name: k.name(), every: s.first * 2 / 3}
		s.known[k] = e
	}
	if at := up.Timestamp(); at > e.at {
		if gap := at.AsTime().Sub(e.at.AsTime()); e.at != 0 && gap <= maxSilence {
			e.every = gap
		}
		e.at = at
	}
	e.lastSeen = now
	e.up = on(up)
	return e
}

func keyOf(attrs pcommon.Map) key {
	text := func(name string) string {
		v, ok := attrs.Get(name)
		if !ok {
			return ""
		}
		return v.AsString()
	}
	return key{text(names.K8sClusterName), text(names.K8sNodeName), text(names.ServerAddress), text(names.ServerPort)}
}

// Sweep forgets exporters that were silent for long.
func (s *Set) Sweep(now time.Time) {
	for k, e := range s.known {
		if now.Sub(e.lastSeen) > maxSilence {
			delete(s.known, k)
		}
	}
}

// Prints reports whether the exporter still prints what it last printed at that
// time: it answers, and has missed no turn.
func (e *Exporter) Prints(last, now time.Time) bool {
	patience := e.every + max(e.every/2, minSlack)
	return e.up && now.Sub(e.lastSeen) <= patience && now.Sub(last) <= patience
}

// Decides reports whether what the exporter last printed at that time is its own to
// print, and not another's: it still does, and its values do not stand still while
// those of the other move.
func (e *Exporter) Decides(other *Exporter, last, now time.Time) bool {
	return e.Prints(last, now) && (!e.frozen || other.frozen)
}

// Duplicates notes that the exporter printed what another decides, and reports
// whether that is news.
func (e *Exporter) Duplicates(owner *Exporter, now time.Time) (news bool) {
	news = e.owner != owner || now.Sub(e.duplicated) > repeatAfter
	e.owner, e.duplicated = owner, now
	return news
}

// Len is the number of exporters that are remembered.
func (s *Set) Len() int { return len(s.known) }
