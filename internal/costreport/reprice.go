// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package costreport

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exact"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// Repricer gives rows other prices.
type Repricer struct {
	book *prices.Book
	// Step is that of the lines that it needs: a price that changes within a day needs
	// hours.
	Step Step
}

// NewRepricer returns one for the rules of a price list. Rows are counted in time of whole
// GPUs, so a price of a MIG instance is refused.
func NewRepricer(currency string, rules []prices.RuleConfig) (*Repricer, error) {
	step := Daily
	for i, r := range rules {
		if _, of := r.Match[prices.MatchProfile]; of {
			return nil, fmt.Errorf("prices::%d::match::%s: a report has the time of whole GPUs: remove the rule, or write the price of the whole board", i, prices.MatchProfile)
		}
		if r.PriceMetric != "" {
			return nil, fmt.Errorf("prices::%d::price_metric: a report has no metrics: remove the rule, or write its price", i)
		}
		if strings.Contains(r.ValidFrom, "T") {
			step = Hourly
		}
	}
	book, err := prices.New(currency, rules)
	if err != nil {
		return nil, err
	}
	return &Repricer{book, step}, nil
}

// Price sets the price that the row has by its hour, or none.
func (p *Repricer) Price(r *usage.Row) {
	price, why := p.book.At(&prices.Facts{
		Model: r.Model, Profile: r.Profile, HostType: r.HostType, Region: r.Region, Cluster: r.Cluster, Capacity: r.CapacityType,
		Labels: labels(r.Labels), Boards: prices.AnyCount,
	}, r.Hour)
	r.Currency, r.RateNano, r.RatePer, r.Kind = p.book.Currency, 0, 0, ""
	if why == prices.Priced {
		r.RateNano, r.RatePer, r.Kind = price.Rate.Nano, price.Rate.Per, price.Kind
	}
}

// labels reads k=v,k=v.
func labels(text string) map[string]string {
	all := map[string]string{}
	for label := range strings.SplitSeq(text, ",") {
		if key, value, is := strings.Cut(label, "="); is {
			all[key] = value
		}
	}
	return all
}

var errLine = errors.New("a line of a report by row is needed")

// Row reads a line of a report by row back. With daily steps it is of the day, or of the
// part of it that is in the report.
func Row(l *consoleapi.CostLine, step Step) (usage.Row, error) {
	g := &l.Group
	if l.Start == nil || l.State == nil || g.Pod == nil || g.Model == nil {
		return usage.Row{}, errLine
	}
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	r := usage.Row{
		Key: usage.Key{
			Cluster: text(g.Cluster), Namespace: text(g.Namespace), Service: text(g.Service), Tenant: text(g.Tenant), Pod: text(g.Pod),
			Model: text(g.Model), HostType: text(g.HostType), Region: text(g.Region), CapacityType: text(g.CapacityType), NodePool: text(g.NodePool),
			Labels: text(g.NodeLabels), Profile: text(g.MIGProfile), State: *l.State, SlurmCluster: text(g.SlurmCluster),
		},
		Hour: l.Start.UTC(), Day: step == Daily || l.End != nil && l.End.Sub(*l.Start) > time.Hour, Open: l.Open, Revision: 1,
		Contested: l.Contested, BoardMetered: l.BoardMetered, Estimated: l.Estimated,
	}
	if p := g.Price; p != nil {
		r.Currency, r.RateNano, r.RatePer, r.Kind = p.Currency, p.Nano, p.Per, p.Kind
	}
	r.Carbon = -1
	energy := consoleapi.CostEnergy{Board: "0", Share: "0", Integrated: "0"}
	if l.Energy != nil {
		energy = *l.Energy
	}
	for _, n := range []struct {
		from   *json.Number
		to     *int64
		digits int
	}{
		{&l.Time, &r.Time, 3}, {l.Used, &r.Used, 3}, {l.Idle, &r.Idle, 3}, {l.Unmeasured, &r.Unmeasured, 3}, {&l.Unplaced, &r.Unplaced, 3},
		{&energy.Board, &r.Energy[0], 3}, {&energy.Share, &r.Energy[1], 3}, {&energy.Integrated, &r.Energy[2], 3}, {l.Carbon, &r.Carbon, 6},
	} {
		if n.from == nil {
			continue
		}
		var err error
		if *n.to, err = exact.ParseDecimal(n.from.String(), n.digits); err != nil {
			return usage.Row{}, err
		}
	}
	return r, nil
}
