// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package pricing answers what the ledger asks about prices and carbon dioxide from the
// price book and the table of intensities of a configuration.
package pricing

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// Pricing is the prices and intensities of a configuration. It is not safe for concurrent
// use.
type Pricing struct {
	book   *prices.Book
	carbon *prices.Carbon

	// facts are of the class that was asked about last: boards of one class follow each
	// other.
	class ledger.Class
	facts prices.Facts

	warned     map[node]bool
	mismatches []Mismatch
}

type node struct{ cluster, name string }

// Mismatch is a node of which the number of boards is not the one that the price of its
// machine is for.
type Mismatch struct {
	Cluster, Node, HostType string
	Boards                  int64
}

// maxWarned bounds the nodes of which it is remembered that they were reported.
const maxWarned = 10_000

// New returns the Pricing of a book and a table; either may be nil, and then nothing is
// known of it.
func New(book *prices.Book, carbon *prices.Carbon) *Pricing {
	return &Pricing{book: book, carbon: carbon, warned: map[node]bool{}}
}

// Price is ledger.Config.Price.
func (p *Pricing) Price(of *ledger.Priced, at int64) ledger.Price {
	never := ledger.Price{Until: math.MaxInt64}
	if p.book == nil {
		return never
	}
	p.describe(of)
	found, why := p.book.At(&p.facts, time.UnixMilli(at))
	until := int64(math.MaxInt64)
	if !found.Until.IsZero() {
		until = found.Until.UnixMilli()
	}
	rate := found.Rate
	if found.PerInstance {
		rate = rate.Of(of.Share.P, of.Share.Q)
	}
	switch {
	case why == prices.OtherCount:
		p.mismatch(of)
		fallthrough
	case why != prices.Priced, !rate.Known():
		return ledger.Price{Until: until}
	}
	return ledger.Price{Rate: rate, Kind: found.Kind, Until: until}
}

// describe makes facts those of what is asked about.
func (p *Pricing) describe(of *ledger.Priced) {
	if c := of.Class; p.class != *c {
		p.class = *c
		p.facts = prices.Facts{
			Model: c.Model, HostType: c.HostType, Region: c.Region, Cluster: c.Cluster, Capacity: c.Capacity, Labels: parseLabels(c.Labels),
		}
	}
	p.facts.Profile, p.facts.Boards, p.facts.Node = of.Profile, of.Boards, of.Node
}

func (p *Pricing) mismatch(of *ledger.Priced) {
	key := node{of.Class.Cluster, of.Node}
	if of.Node == "" || of.Boards == 0 || p.warned[key] || len(p.warned) >= maxWarned {
		return
	}
	p.warned[key] = true
	p.mismatches = append(p.mismatches, Mismatch{Cluster: key.cluster, Node: key.name, HostType: of.Class.HostType, Boards: of.Boards})
}

// Mismatches returns the nodes that are new since the last call. Each is returned once.
func (p *Pricing) Mismatches() []Mismatch {
	all := p.mismatches
	p.mismatches = nil
	return all
}

// Carbon is ledger.Config.Carbon.
func (p *Pricing) Carbon(c *ledger.Class, at int64) (milligrams int64, ok bool) {
	if p.carbon == nil {
		return 0, false
	}
	milligrams, _, ok = p.carbon.At(c.Region, time.UnixMilli(at))
	return milligrams, ok
}

// Gauge is a gauge of another receiver that prices or intensities are taken from.
type Gauge struct {
	// Keys are the attributes of a point or its resource that have the node or the region; the
	// first that is not empty decides.
	Keys []string
	// Observe notes a value. It returns false for an unusable one.
	Observe func(cluster, key string, at time.Time, value float64) bool
}

// Gauges returns the gauges of the configuration by name.
func (p *Pricing) Gauges() map[string]Gauge {
	all := map[string]Gauge{}
	if p.book != nil {
		for _, name := range p.book.Gauges() {
			all[name] = Gauge{[]string{"node", names.K8sNodeName}, func(cluster, node string, at time.Time, value float64) bool {
				return p.book.Observe(name, cluster, node, at, value)
			}}
		}
	}
	if p.carbon != nil {
		if name, attribute := p.carbon.Gauge(); name != "" {
			all[name] = Gauge{[]string{attribute}, func(_, region string, at time.Time, value float64) bool {
				return p.carbon.Observe(region, at, value)
			}}
		}
	}
	return all
}

// readings are what gauges reported, as they are stored.
type readings struct {
	Currency string          `json:"currency"`
	Prices   prices.Readings `json:"prices,omitempty"`
	Carbon   prices.Readings `json:"carbon,omitempty"`
}

// Readings returns what gauges reported, to be continued with after a restart; nil where no price
// and no intensity is taken from a gauge.
func (p *Pricing) Readings(now time.Time) []byte {
	if len(p.Gauges()) == 0 {
		return nil
	}
	var r readings
	if p.book != nil {
		r.Currency, r.Prices = p.book.Currency, p.book.Readings(now)
	}
	if p.carbon != nil {
		r.Carbon = p.carbon.Readings(now)
	}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // texts and numbers alone
	}
	return text
}

// Restore continues with readings. Prices in another currency are left out.
func (p *Pricing) Restore(text []byte, now time.Time) error {
	var r readings
	if len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return errReadings
	}
	ok := true
	if p.book != nil && r.Currency == p.book.Currency {
		ok = p.book.Restore(r.Prices, now)
	}
	if p.carbon != nil {
		ok = p.carbon.Restore(r.Carbon, now) && ok
	}
	if !ok {
		return errReadings
	}
	return nil
}

var errReadings = errors.New("some are damaged, of a clock that is ahead, or of another version")

// Unpriced returns the time of rows without a price by model, in ms of a GPU.
func Unpriced(totals []ledger.Total) map[string]int64 {
	sums := map[string]int64{}
	for i := range totals {
		if t := &totals[i]; t.Unpriced > 0 {
			sums[t.Key.Model] += t.Unpriced
		}
	}
	return sums
}

// Labels writes labels in the form that ledger.Class has them in: "k=v,k=v". They are
// sorted by key, and neither a key nor a value contains a comma or an equals sign.
func Labels(labels []Label) string {
	var b strings.Builder
	for i, l := range labels {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(l.Key)
		b.WriteByte('=')
		b.WriteString(l.Value)
	}
	return b.String()
}

// Label is a label of a node.
type Label struct{ Key, Value string }

func parseLabels(text string) map[string]string {
	if text == "" {
		return nil
	}
	labels := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(pair, "=")
		labels[key] = value
	}
	return labels
}
